# One list of sources per folder of src. ABOVE names the layers directly below it, from the nearest on: the tree of
# docs/architecture.md, which tests/project checks against includes and against the linker. KERNELS are raw pointers and
# plain loops.
include(cmake/layer.cmake)

# the files of the report's page, as strings of the library
set(page_files page.html page.css basics.js charts.js importance.js fast_weights.js page.js board.js)
list(JOIN page_files "," page_names)
list(TRANSFORM page_files PREPEND ${PROJECT_SOURCE_DIR}/src/report/)
set(page_text ${PROJECT_BINARY_DIR}/report/page_text.cpp)
add_custom_command(OUTPUT ${page_text}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${page_text} -DFOLDER=${PROJECT_SOURCE_DIR}/src/report -DFILES=${page_names}
          -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  DEPENDS ${page_files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
  COMMENT "Embedding the report's page"
  VERBATIM)

fastweights_layer(base
  SOURCES
  src/base/available_memory.cpp
  src/base/checksum.cpp
  src/base/files.cpp
  src/base/json_fields.cpp
  src/base/lyndon.cpp
  src/base/nearest.cpp
  src/base/printable.cpp
  src/base/random.cpp
  src/base/tableau.cpp
  src/base/utf8.cpp)

fastweights_layer(control ABOVE tensor kernels base
  SOURCES
  src/control/control.cpp
  src/control/cuda/on_device.cpp
  src/control/logsignature.cpp)

fastweights_layer(data ABOVE tensor base
  SOURCES
  src/data/arff_reader.cpp
  src/data/cache.cpp
  src/data/catalogue.cpp
  src/data/cells.cpp
  src/data/counts.cpp
  src/data/csv_folder.cpp
  src/data/csv_reader.cpp
  src/data/csv_table.cpp
  src/data/dataset.cpp
  src/data/fetch.cpp
  src/data/files.cpp
  src/data/generators.cpp
  src/data/gzip.cpp
  src/data/mfcc.cpp
  src/data/model_time.cpp
  src/data/npz.cpp
  src/data/npz_reader.cpp
  src/data/parts_reader.cpp
  src/data/physionet2012.cpp
  src/data/physionet2019.cpp
  src/data/prepare.cpp
  src/data/read.cpp
  src/data/row_order.cpp
  src/data/sha256.cpp
  src/data/speech.cpp
  src/data/split.cpp
  src/data/text.cpp
  src/data/text_channels.cpp
  src/data/time_axis.cpp
  src/data/time_split.cpp
  src/data/ts_reader.cpp
  src/data/ts_writer.cpp
  src/data/unpack.cpp
  src/data/warnings.cpp
  src/data/writers.cpp
  src/data/zip.cpp)

fastweights_layer(environment ABOVE tensor kernels base
  SOURCES
  src/environment/environment.cpp)

fastweights_layer(kernels
  KERNELS
  src/kernels/instruction_set.cpp
  src/kernels/path.cpp
  src/kernels/product.cpp
  src/kernels/series_rows.cpp
  src/kernels/signature.cpp
  src/kernels/signature_baseline.cpp
  src/kernels/weighted_sum.cpp)

fastweights_layer(model ABOVE nn control ops solve tensor base
  SOURCES
  src/model/architecture.cpp
  src/model/batch.cpp
  src/model/block.cpp
  src/model/config_checks.cpp
  src/model/config_fields.cpp
  src/model/config_names.cpp
  src/model/engine.cpp
  src/model/fast_weights.cpp
  src/model/field.cpp
  src/model/memory.cpp
  src/model/network.cpp
  src/model/output_index.cpp
  src/model/parts.cpp
  src/model/prepared.cpp
  src/model/programmer.cpp
  src/model/programmer_config.cpp
  src/model/schedule.cpp
  src/model/signal.cpp
  src/model/step_rows.cpp)

fastweights_layer(nn ABOVE control ops tensor base
  SOURCES
  src/nn/cuda/device_net.cpp
  src/nn/fast_weight_layer.cpp
  src/nn/features.cpp
  src/nn/layers.cpp)

fastweights_layer(ops ABOVE solve tensor kernels base
  KERNELS
  src/ops/scan/cpu/baseline.cpp
  src/ops/scan/cpu/kernel.cpp
  src/ops/scan/cpu/lanes.cpp
  src/ops/scan/cpu/normalise.cpp
  SOURCES
  src/ops/classical.cpp
  src/ops/rule.cpp
  src/ops/scan/chunkwise.cpp
  src/ops/scan/cpu/fused.cpp
  src/ops/scan/cuda/device_program.cpp
  src/ops/scan/cuda/device_scan.cpp
  src/ops/scan/cuda/time_parallel.cpp
  src/ops/scan/definition.cpp
  src/ops/scan/grouped.cpp
  src/ops/scan/plan.cpp
  src/ops/scan/row_scan.cpp
  src/ops/scan/scan.cpp)

fastweights_layer(report ABOVE base
  SOURCES
  src/report/model_card.cpp
  src/report/report.cpp
  src/report/report_json.cpp
  ${page_text})

fastweights_layer(selftest ABOVE architectures model control solve tensor base
  SOURCES
  src/selftest/definitions.cpp
  src/selftest/engine_cases.cpp
  src/selftest/engine_table.cpp
  src/selftest/selftest.cpp)

fastweights_layer(solve ABOVE tensor base
  SOURCES
  src/solve/adaptive.cpp
  src/solve/adjoint.cpp
  src/solve/adjoint_given.cpp
  src/solve/augmented.cpp
  src/solve/checkpoint.cpp
  src/solve/plan.cpp
  src/solve/solve.cpp
  src/solve/step.cpp
  src/solve/step_group.cpp)

fastweights_layer(architectures ABOVE model nn ops solve tensor kernels base
  SOURCES
  src/architectures/continuous.cpp
  src/architectures/discrete_fwp.cpp
  src/architectures/dtw.cpp
  src/architectures/evolve.cpp
  src/architectures/filled.cpp
  src/architectures/gradcheck.cpp
  src/architectures/gru_cell.cpp
  src/architectures/gru_ode.cpp
  src/architectures/latent.cpp
  src/architectures/latent_ode.cpp
  src/architectures/linear_head.cpp
  src/architectures/minimise.cpp
  src/architectures/minirocket.cpp
  src/architectures/model.cpp
  src/architectures/model_file.cpp
  src/architectures/naive.cpp
  src/architectures/nearest_neighbour.cpp
  src/architectures/neural_cde.cpp
  src/architectures/observed_gru.cpp
  src/architectures/ode_rfwp.cpp
  src/architectures/packed.cpp
  src/architectures/parameter_names.cpp
  src/architectures/published.cpp
  src/architectures/published_baselines.cpp
  src/architectures/recurrent.cpp
  src/architectures/registry.cpp
  src/architectures/rfwp_cell.cpp
  src/architectures/rocket_kernels.cpp
  src/architectures/row_layer.cpp
  src/architectures/row_memory.cpp
  src/architectures/row_network.cpp
  src/architectures/rows.cpp
  src/architectures/season.cpp
  src/architectures/standardised.cpp
  src/architectures/baseline.cpp)

fastweights_layer(tensor ABOVE kernels base
  SOURCES
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
  src/tensor/time.cpp)

fastweights_layer(train ABOVE architectures model report data environment solve tensor kernels base
  SOURCES
  src/train/advice.cpp
  src/train/board.cpp
  src/train/bootstrap.cpp
  src/train/calibration.cpp
  src/train/calibration_json.cpp
  src/train/checkpoint.cpp
  src/train/clock.cpp
  src/train/compare.cpp
  src/train/device_adam.cpp
  src/train/ensemble.cpp
  src/train/event_file.cpp
  src/train/first_guess.cpp
  src/train/fit.cpp
  src/train/fit_first_guess.cpp
  src/train/fold_calibration.cpp
  src/train/future.cpp
  src/train/importance.cpp
  src/train/metric_sums.cpp
  src/train/metrics.cpp
  src/train/model_time.cpp
  src/train/optimise.cpp
  src/train/predict.cpp
  src/train/prediction_intervals.cpp
  src/train/preparation_json.cpp
  src/train/presets.cpp
  src/train/recorded_step.cpp
  src/train/reference.cpp
  src/train/report_classes.cpp
  src/train/report_data.cpp
  src/train/report_facts.cpp
  src/train/report_runs.cpp
  src/train/report_series.cpp
  src/train/report_weights.cpp
  src/train/run.cpp
  src/train/run_config.cpp
  src/train/run_data.cpp
  src/train/run_files.cpp
  src/train/run_lock.cpp
  src/train/run_names.cpp
  src/train/run_set.cpp
  src/train/run_split.cpp
  src/train/step.cpp
  src/train/task.cpp
  src/train/task_rows.cpp
  src/train/tensor_adam.cpp
  src/train/train_runs.cpp
  src/train/trained_model.cpp
  src/train/trainer.cpp
  src/train/training_steps.cpp)

# the same kernels for wider registers, chosen at run time
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  fastweights_kernels_for(avx2 "-mavx2;-mfma"
    src/kernels/signature_avx2.cpp src/ops/scan/cpu/avx2.cpp)
  fastweights_kernels_for(avx512 "-mavx512f;-mavx512dq;-mavx2;-mfma;-mprefer-vector-width=512"
    src/kernels/signature_avx512.cpp src/ops/scan/cpu/avx512.cpp)
  target_compile_definitions(fastweights_kernels PRIVATE FASTWEIGHTS_X86)
  target_compile_definitions(fastweights_ops PRIVATE FASTWEIGHTS_X86)
endif()
# vectors and the ends of loops round alike: no fused multiply-adds in one and not in the other
set_property(SOURCE src/kernels/product.cpp APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)
# random numbers are the same on machines that would fuse multiply-adds by themselves
set_source_files_properties(src/base/random.cpp PROPERTIES
  COMPILE_OPTIONS -ffp-contract=off SKIP_PRECOMPILE_HEADERS ON)
# nor complex products, which g++ 12 fuses in vectors whatever it is told
set_source_files_properties(src/data/generators.cpp PROPERTIES
  COMPILE_OPTIONS "-ffp-contract=off;-fno-tree-slp-vectorize" SKIP_PRECOMPILE_HEADERS ON)
set_source_files_properties(src/environment/environment.cpp PROPERTIES COMPILE_DEFINITIONS
  "FASTWEIGHTS_VERSION=\"${PROJECT_VERSION}\";FASTWEIGHTS_COMPILER=\"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\"")

# a target per package that was found, with a definition that says so
foreach(library ZLIB::ZLIB SndFile::sndfile CURL::libcurl LibArchive::LibArchive)
  if(TARGET ${library})
    string(REGEX REPLACE "::.*" "" name ${library})
    string(TOUPPER ${name} name)
    fastweights_layer_uses(data ${library})
    target_compile_definitions(fastweights_data PRIVATE FASTWEIGHTS_${name})
  endif()
endforeach()

if(FASTWEIGHTS_CUDA)
  set(scan_sources src/ops/scan/cuda/collapse.cu src/ops/scan/cuda/combine.cu src/ops/scan/cuda/extras.cu
    src/ops/scan/cuda/net.cu src/ops/scan/cuda/normalise.cu src/ops/scan/cuda/program.cu src/ops/scan/cuda/scan.cu)
  foreach(width 4 5 8 10 16 20 32 64 64_each 64_flow)
    list(APPEND scan_sources src/ops/scan/cuda/width_${width}.cu)
  endforeach()
  target_sources(fastweights_kernels PRIVATE src/kernels/cuda/adam.cu src/kernels/cuda/dropout.cu
    src/kernels/cuda/path.cu src/kernels/cuda/signature.cu)
  target_sources(fastweights_ops PRIVATE ${scan_sources})
  target_sources(fastweights_environment PRIVATE src/environment/cuda_device.cu)
  target_sources(fastweights_tensor PRIVATE src/tensor/cuda/device.cpp)
  foreach(layer kernels ops environment tensor)
    fastweights_layer_uses(${layer} CUDA::cudart)
    # code for several devices side by side
    target_compile_options(fastweights_${layer} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--threads=2>)
  endforeach()
else()
  target_sources(fastweights_environment PRIVATE src/environment/no_cuda_device.cpp)
  target_sources(fastweights_kernels PRIVATE src/kernels/cuda/stubs.cpp)
  target_sources(fastweights_ops PRIVATE src/ops/scan/cuda/stubs.cpp)
  target_sources(fastweights_tensor PRIVATE src/tensor/cuda/stubs.cpp)
endif()

fastweights_library()
