# raw pointers and plain loops
add_library(fastweights_kernels OBJECT
  src/kernels/instruction_set.cpp
  src/kernels/path.cpp
  src/kernels/product.cpp
  src/kernels/signature.cpp
  src/kernels/signature_baseline.cpp
  src/kernels/weighted_sum.cpp
  src/ops/scan/cpu_baseline.cpp
  src/ops/scan/kernel.cpp
  src/ops/scan/lanes.cpp
  src/ops/scan/normalise.cpp)
target_include_directories(fastweights_kernels PRIVATE src)
target_link_libraries(fastweights_kernels PRIVATE fastweights_flags)
target_compile_options(fastweights_kernels PRIVATE $<$<CONFIG:Release>:-O3>)
# vectors and the ends of loops round alike: no fused multiply-adds in one and not in the other
set_source_files_properties(src/kernels/product.cpp PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
# the same code once more for wider registers, chosen at run time
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2_sources src/kernels/signature_avx2.cpp src/ops/scan/cpu_avx2.cpp)
  set(avx512_sources src/kernels/signature_avx512.cpp src/ops/scan/cpu_avx512.cpp)
  target_sources(fastweights_kernels PRIVATE ${avx2_sources} ${avx512_sources})
  set_source_files_properties(${avx2_sources} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma")
  set_source_files_properties(${avx512_sources} PROPERTIES
    COMPILE_OPTIONS "-mavx512f;-mavx512dq;-mavx2;-mfma;-mprefer-vector-width=512")
  target_compile_definitions(fastweights_kernels PRIVATE FASTWEIGHTS_X86)
endif()

# the files of the report's page, as strings of the library
set(page_files page.html page.css basics.js charts.js fast_weights.js page.js)
list(JOIN page_files "," page_names)
list(TRANSFORM page_files PREPEND ${PROJECT_SOURCE_DIR}/src/report/)
set(page_text ${PROJECT_BINARY_DIR}/report/page_text.cpp)
add_custom_command(OUTPUT ${page_text}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${page_text} -DFOLDER=${PROJECT_SOURCE_DIR}/src/report -DFILES=${page_names}
          -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${page_files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  COMMENT "Embedding the report's page"
  VERBATIM)

add_library(fastweights
  src/base/json_fields.cpp
  src/base/lyndon.cpp
  src/base/nearest.cpp
  src/base/random.cpp
  src/base/tableau.cpp
  src/control/control.cpp
  src/control/logsignature.cpp
  src/control/on_device.cpp
  src/data/arff_reader.cpp
  src/data/cache.cpp
  src/data/catalogue.cpp
  src/data/csv_folder.cpp
  src/data/csv_reader.cpp
  src/data/csv_table.cpp
  src/data/dataset.cpp
  src/data/fetch.cpp
  src/data/files.cpp
  src/data/generators.cpp
  src/data/mfcc.cpp
  src/data/npz.cpp
  src/data/npz_reader.cpp
  src/data/parts_reader.cpp
  src/data/physionet2012.cpp
  src/data/physionet2019.cpp
  src/data/prepare.cpp
  src/data/read.cpp
  src/data/sha256.cpp
  src/data/speech.cpp
  src/data/split.cpp
  src/data/text.cpp
  src/data/time_axis.cpp
  src/data/ts_reader.cpp
  src/data/ts_writer.cpp
  src/data/unpack.cpp
  src/data/writers.cpp
  src/data/zip.cpp
  src/environment/environment.cpp
  src/model/batch.cpp
  src/model/block.cpp
  src/model/config.cpp
  src/model/config_json.cpp
  src/model/config_names.cpp
  src/model/engine.cpp
  src/model/field.cpp
  src/model/memory.cpp
  src/model/network.cpp
  src/model/output_index.cpp
  src/model/programmer.cpp
  src/model/parts.cpp
  src/model/prepared.cpp
  src/model/schedule.cpp
  src/model/signal.cpp
  src/model/step_rows.cpp
  src/model/system_check.cpp
  src/nn/device_net.cpp
  src/nn/fast_weight_layer.cpp
  src/nn/features.cpp
  src/nn/layers.cpp
  src/ops/classical.cpp
  src/ops/chunkwise.cpp
  src/ops/rule.cpp
  src/ops/scan/device_programme.cpp
  src/ops/scan/fused.cpp
  src/ops/scan/on_device.cpp
  src/ops/scan/plan.cpp
  src/ops/scan/reference.cpp
  src/ops/scan/scan.cpp
  src/ops/scan/time_parallel.cpp
  src/report/chart.cpp
  src/report/chart_axis.cpp
  src/report/report.cpp
  src/report/report_check.cpp
  ${page_text}
  src/selftest/definitions.cpp
  src/selftest/engine_cases.cpp
  src/selftest/engine_table.cpp
  src/selftest/selftest.cpp
  src/solve/adaptive.cpp
  src/solve/adjoint.cpp
  src/solve/adjoint_given.cpp
  src/solve/augmented.cpp
  src/solve/checkpoint.cpp
  src/solve/plan.cpp
  src/solve/solve.cpp
  src/solve/step.cpp
  src/solve/step_group.cpp
  src/systems/continuous.cpp
  src/systems/discrete_fwp.cpp
  src/systems/evolve.cpp
  src/systems/gradcheck.cpp
  src/systems/gru_cell.cpp
  src/systems/gru_ode.cpp
  src/systems/latent.cpp
  src/systems/latent_ode.cpp
  src/systems/model_file.cpp
  src/systems/neural_cde.cpp
  src/systems/observed_gru.cpp
  src/systems/ode_rfwp.cpp
  src/systems/packed.cpp
  src/systems/published.cpp
  src/systems/published_systems.cpp
  src/systems/recurrent.cpp
  src/systems/rfwp_cell.cpp
  src/systems/row_layer.cpp
  src/systems/row_memory.cpp
  src/systems/rows.cpp
  src/systems/model.cpp
  src/systems/system.cpp
  src/tensor/autograd.cpp
  src/tensor/large.cpp
  src/tensor/parallel.cpp
  src/tensor/product.cpp
  src/tensor/ragged.cpp
  src/tensor/random_tensor.cpp
  src/tensor/runtime.cpp
  src/tensor/safetensors.cpp
  src/tensor/safetensors_header.cpp
  src/tensor/stage_sums.cpp
  src/tensor/time.cpp
  src/train/checkpoint.cpp
  src/train/clock.cpp
  src/train/device_adam.cpp
  src/train/files.cpp
  src/train/future.cpp
  src/train/known_models.cpp
  src/train/metrics.cpp
  src/train/optimise.cpp
  src/train/predict.cpp
  src/train/recorded_step.cpp
  src/train/report_data.cpp
  src/train/run.cpp
  src/train/run_config.cpp
  src/train/run_data.cpp
  src/train/run_names.cpp
  src/train/step.cpp
  src/train/task.cpp
  src/train/tensor_adam.cpp
  src/train/trained_model.cpp
  src/train/trainer.cpp
  src/train/training_steps.cpp
  $<TARGET_OBJECTS:fastweights_kernels>)
# random numbers are the same on machines that would fuse multiply-adds by themselves
set_source_files_properties(src/base/random.cpp PROPERTIES
  COMPILE_OPTIONS -ffp-contract=off SKIP_PRECOMPILE_HEADERS ON)
# nor complex products, which g++ 12 fuses in vectors whatever it is told
set_source_files_properties(src/data/generators.cpp PROPERTIES
  COMPILE_OPTIONS "-ffp-contract=off;-fno-tree-slp-vectorize" SKIP_PRECOMPILE_HEADERS ON)
add_library(fastweights::fastweights ALIAS fastweights)
fastweights_use_precompiled(fastweights)
target_include_directories(fastweights
  PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>
  PRIVATE src)
target_include_directories(fastweights SYSTEM PRIVATE ${FASTWEIGHTS_JSON_INCLUDE})
target_link_libraries(fastweights
  PUBLIC ${TORCH_LIBRARIES}
  PRIVATE $<BUILD_INTERFACE:fastweights_flags> OpenMP::OpenMP_CXX)
foreach(library SNDFILE CURL LIBARCHIVE)
  if(FASTWEIGHTS_${library}_INCLUDE AND FASTWEIGHTS_${library}_LIBRARY)
    target_compile_definitions(fastweights PRIVATE FASTWEIGHTS_${library})
    target_include_directories(fastweights SYSTEM PRIVATE ${FASTWEIGHTS_${library}_INCLUDE})
    target_link_libraries(fastweights PRIVATE ${FASTWEIGHTS_${library}_LIBRARY})
  endif()
endforeach()
target_compile_features(fastweights PUBLIC cxx_std_20)
target_compile_definitions(fastweights PRIVATE
  FASTWEIGHTS_VERSION="${PROJECT_VERSION}"
  FASTWEIGHTS_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
if(ZLIB_FOUND)
  target_link_libraries(fastweights PRIVATE ZLIB::ZLIB)
  set_source_files_properties(src/data/zip.cpp PROPERTIES COMPILE_DEFINITIONS FASTWEIGHTS_ZLIB)
endif()
if(FASTWEIGHTS_CUDA)
  find_package(CUDAToolkit REQUIRED)
  set(cuda_sources
    src/environment/cuda_device.cu
    src/kernels/cuda/adam.cu
    src/kernels/cuda/dropout.cu
    src/kernels/cuda/path.cu
    src/kernels/cuda/signature.cu
    src/ops/scan/cuda/collapse.cu
    src/ops/scan/cuda/combine.cu
    src/ops/scan/cuda/extras.cu
    src/ops/scan/cuda/net.cu
    src/ops/scan/cuda/normalise.cu
    src/ops/scan/cuda/programme.cu
    src/ops/scan/cuda/scan.cu)
  foreach(width 4 5 8 10 16 20 32 64 64_each)
    list(APPEND cuda_sources src/ops/scan/cuda/width_${width}.cu)
  endforeach()
  target_sources(fastweights PRIVATE ${cuda_sources} src/tensor/device_cuda.cpp)
  target_link_libraries(fastweights PRIVATE CUDA::cudart)
  # code for several devices side by side
  target_compile_options(fastweights PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--threads=2>)
else()
  target_sources(fastweights PRIVATE src/environment/no_cuda_device.cpp src/kernels/cuda/none.cpp
    src/ops/scan/cuda/none.cpp src/tensor/device_none.cpp)
endif()
