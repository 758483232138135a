# The CUDA kernels and what compiles them: nvcc (ACCRUE_CUDA=on) or g++ (simulated).
if(ACCRUE_CUDA STREQUAL "on")
  # Code for A100, H100 / H200 and B200; PTX for later chips and, uncompressed, for tests/cuda/ptx.py.
  set(CMAKE_CUDA_ARCHITECTURES 80 90 100 CACHE STRING "GPUs to build for")
  enable_language(CUDA)
  find_package(CUDAToolkit 12 REQUIRED)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared) # one runtime for kernels and NCCL
  # CMake 3.25 does not know that nvcc speaks C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  # No contraction, also on the host. 554: a conversion of const views that is never called.
  set(ACCRUE_NVCC_OPTIONS --no-compress --fmad=false --expt-relaxed-constexpr -diag-suppress=554
                          -Xcompiler=-ffp-contract=off)
elseif(ACCRUE_CUDA STREQUAL "simulated")
  add_subdirectory(kernels/simt)
else()
  message(FATAL_ERROR "ACCRUE_CUDA must be off, on or simulated, got ${ACCRUE_CUDA}")
endif()
if(ACCRUE_CUDA STREQUAL "simulated" OR ACCRUE_GPU_TESTS)
  set(ACCRUE_RUNS_DEVICES ON)
endif()
add_subdirectory(kernels/cuda)
if(ACCRUE_PROCESSES)
  add_subdirectory(dist/nccl)
endif()
if(ACCRUE_COVERAGE)
  foreach(target IN ITEMS accrue_cuda accrue_nccl)
    target_compile_options(${target} PRIVATE -O1 --coverage -fprofile-update=atomic)
    target_link_options(${target} PUBLIC --coverage)
  endforeach()
endif()
