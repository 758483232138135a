// The stand-in's memory, streams and events: the simulator's, behind the names of the CUDA runtime.
//
// Work that is queued on a stream runs when somebody waits, copies too, whatever memory they read.
#pragma once

#include <cuda_runtime.h>

#include <string>

namespace accrue::ptx {

/// Lets a call of the CUDA runtime, of runtime.cpp, fail while it lives.
class FailingCall {
 public:
  FailingCall(std::string call, cudaError_t status);
  ~FailingCall();
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
};

/// How often cudaMallocHost has given memory.
int num_pinned();

}  // namespace accrue::ptx
