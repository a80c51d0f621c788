# What library.cmake says with: layers, each a folder of src compiled once, and the library that all of them make.
set(FASTWEIGHTS_LAYERS "")
set(kernel_options $<$<CONFIG:Release>:-O3>)

# a folder: its own sources, kernels among them, the layers that it may use
function(fastweights_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 layer "" "" "ABOVE;KERNELS;SOURCES")
  set(target fastweights_${name})
  add_library(${target} OBJECT ${layer_SOURCES} ${layer_KERNELS})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(${target} SYSTEM PRIVATE ${FASTWEIGHTS_JSON_INCLUDE})
  target_link_libraries(${target} PRIVATE fastweights::torch fastweights_flags)
  if(layer_SOURCES)
    fastweights_use_precompiled(${target})
  endif()
  set_source_files_properties(${layer_KERNELS} PROPERTIES
    COMPILE_OPTIONS "${kernel_options}" SKIP_PRECOMPILE_HEADERS ON)
  # code around kernels on a GPU has functions of the same names for each of them
  set(device_sources ${layer_SOURCES})
  list(FILTER device_sources INCLUDE REGEX "/cuda/")
  set_source_files_properties(${device_sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES FASTWEIGHTS_ABOVE "${layer_ABOVE}" FASTWEIGHTS_USES "")
  set(FASTWEIGHTS_LAYERS ${FASTWEIGHTS_LAYERS} ${name} PARENT_SCOPE)
endfunction()

# kernels compiled for an instruction set, each in the layer of its folder
function(fastweights_kernels_for set options)
  foreach(source ${ARGN})
    string(REGEX REPLACE "^src/([^/]*)/.*" "fastweights_\\1" target ${source})
    target_sources(${target} PRIVATE ${source})
  endforeach()
  set_source_files_properties(${ARGN} PROPERTIES
    COMPILE_OPTIONS "${kernel_options};${options}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# a library besides LibTorch that a layer calls
function(fastweights_layer_uses name library)
  target_link_libraries(fastweights_${name} PRIVATE ${library})
  set_property(TARGET fastweights_${name} APPEND PROPERTY FASTWEIGHTS_USES ${library})
endfunction()

# all layers as one library, static or shared
macro(fastweights_library)
  add_library(fastweights)
  add_library(fastweights::fastweights ALIAS fastweights)
  foreach(layer ${FASTWEIGHTS_LAYERS})
    target_sources(fastweights PRIVATE $<TARGET_OBJECTS:fastweights_${layer}>)
    get_target_property(uses fastweights_${layer} FASTWEIGHTS_USES)
    target_link_libraries(fastweights PRIVATE ${uses})
  endforeach()
  target_include_directories(fastweights
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(fastweights
    PUBLIC fastweights::torch
    PRIVATE $<BUILD_INTERFACE:fastweights_flags> OpenMP::OpenMP_CXX)
  target_compile_features(fastweights PUBLIC cxx_std_20)
  set_target_properties(fastweights PROPERTIES LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endmacro()
