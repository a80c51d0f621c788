# LibTorch for CUDA sets architectures and flags of its own: ours are kept
if(FASTWEIGHTS_CUDA)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 20)
endif()
set(saved_architectures "${CMAKE_CUDA_ARCHITECTURES}")
set(saved_flags "${CMAKE_CUDA_FLAGS}")
find_package(Torch REQUIRED)  # no version: Debian's 1.13.1 calls itself 1.13.0
set(CMAKE_CUDA_ARCHITECTURES "${saved_architectures}")
set(CMAKE_CUDA_FLAGS "${saved_flags}")
include(${PROJECT_SOURCE_DIR}/cmake/torch_target.cmake)

find_package(OpenMP REQUIRED COMPONENTS CXX)

# header-only libraries by their headers, so that a plain copy of them will do
find_path(FASTWEIGHTS_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
find_path(FASTWEIGHTS_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)

# optional: compressed members of .npz files, sound, downloads, archives. A command that needs what is missing says so.
# The installed package looks for what was found here.
list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
set(FASTWEIGHTS_PACKAGES "")
foreach(package ZLIB SndFile CURL LibArchive)
  find_package(${package})
  if(${package}_FOUND)
    list(APPEND FASTWEIGHTS_PACKAGES ${package})
  endif()
endforeach()
if(FASTWEIGHTS_CUDA)
  find_package(CUDAToolkit REQUIRED)
  list(APPEND FASTWEIGHTS_PACKAGES CUDAToolkit)
endif()

# warnings and sanitizers for everything of ours; warnings are errors with the compilers we check with, since others
# find new ones in code that is right
add_library(fastweights_flags INTERFACE)
set(checked_compiler $<OR:$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>,$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,15>>>)
# -fPIC everywhere, programs included, so that all share one precompiled header
target_link_libraries(fastweights_flags INTERFACE OpenMP::OpenMP_CXX)
target_compile_options(fastweights_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fPIC -Wall -Wextra>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC>
  $<$<AND:$<BOOL:${FASTWEIGHTS_WERROR}>,$<COMPILE_LANGUAGE:CXX>,${checked_compiler}>:-Werror>)
# g++ 12 reports overlapping and out-of-bounds copies inside std::string where there are none (GCC bugs 105329, 105651)
target_compile_options(fastweights_flags INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>)
if(FASTWEIGHTS_SANITIZE)
  target_compile_options(fastweights_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${FASTWEIGHTS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  # with sanitizers g++ warns about LibTorch's optionals, which it instantiates in our code
  target_compile_options(fastweights_flags INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)
  target_link_options(fastweights_flags INTERFACE -fsanitize=${FASTWEIGHTS_SANITIZE})
endif()
