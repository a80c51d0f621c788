include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME fastweights)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/fastweights)

install(TARGETS fastweights EXPORT fastweights_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS fastweights_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/fastweights DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY share/splits DESTINATION ${CMAKE_INSTALL_DATADIR}/fastweights)
install(EXPORT fastweights_targets NAMESPACE fastweights:: DESTINATION ${package_folder})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

configure_package_config_file(cmake/fastweightsConfig.cmake.in ${PROJECT_BINARY_DIR}/fastweightsConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/fastweightsConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fastweightsConfig.cmake ${PROJECT_BINARY_DIR}/fastweightsConfigVersion.cmake
  cmake/torch_target.cmake cmake/FindSndFile.cmake DESTINATION ${package_folder})

# made of the program's --help when it is installed, so that building does not wait for it
if(NOT CMAKE_CROSSCOMPILING)
  set(manual ${PROJECT_BINARY_DIR}/manual)
  install(CODE "execute_process(COMMAND \"${PROJECT_SOURCE_DIR}/scripts/manual\"
    \"$<TARGET_FILE:fastweights_program>\" \"${manual}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT manual)
  install(FILES ${manual}/fastweights.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT manual)
  install(FILES ${manual}/fastweights.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME fastweights COMPONENT manual)
  install(FILES ${manual}/_fastweights DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT manual)
endif()

# packages: cpack -G DEB in the build folder, cpack --config CPackSourceConfig.cmake for the source archive
set(CPACK_PACKAGE_VENDOR "the fastweights authors")
set(CPACK_PACKAGE_CONTACT "the fastweights authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# for programs that use the library
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
  "g++, cmake, libtorch-dev, libsndfile1-dev, libcurl4-openssl-dev, libarchive-dev, zlib1g-dev")
set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_PACKAGE_FILE_NAME fastweights-${PROJECT_VERSION})
set(CPACK_SOURCE_IGNORE_FILES /build/ /\\.git/ /\\.carry/ /\\.cache/ /runs/ /install/)
include(CPack)
