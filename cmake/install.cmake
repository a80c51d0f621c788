include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS fastweights EXPORT fastweights_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS fastweights_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/fastweights DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY share/splits DESTINATION ${CMAKE_INSTALL_DATADIR}/fastweights)
install(EXPORT fastweights_targets NAMESPACE fastweights:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fastweights)

configure_package_config_file(cmake/fastweightsConfig.cmake.in ${PROJECT_BINARY_DIR}/fastweightsConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fastweights)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fastweightsConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fastweightsConfig.cmake ${PROJECT_BINARY_DIR}/fastweightsConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/fastweights)
