# LibTorch's libraries, some of which are paths, as one target: exported targets then name no path
if(NOT TARGET fastweights::torch)
  add_library(fastweights::torch INTERFACE IMPORTED)
  target_link_libraries(fastweights::torch INTERFACE ${TORCH_LIBRARIES})
endif()
