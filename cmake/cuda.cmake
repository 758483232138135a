# The CUDA kernels and what compiles them: nvcc (ACCRUE_CUDA=on) or g++ (simulated).
if(ACCRUE_CUDA STREQUAL "simulated")
  add_subdirectory(kernels/simt)
endif()
