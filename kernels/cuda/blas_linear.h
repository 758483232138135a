// Linear layers and matrix products in the speed modes of MatmulPrecision, by cuBLAS.
#pragma once

#include "accrue/kernels/batched_matmul.h"
#include "accrue/kernels/cuda/stream.h"
#include "accrue/kernels/linear.h"

namespace accrue::kernels::cuda {

// Each queues what launch_cuda() of the same arguments is for. False, with nothing done, for ieee
// and for layouts that cuBLAS does not take. Errors: DeviceError.
bool run_by_blas(const LinearForward<float>& args, Stream stream);
bool run_by_blas(const LinearInputGrad<float>& args, Stream stream);
bool run_by_blas(const LinearWeightGrad<float>& args, Stream stream);
bool run_by_blas(const Matmul<float>& args, Stream stream);
bool run_by_blas(const BatchedMatmul& args, Stream stream);

}  // namespace accrue::kernels::cuda
