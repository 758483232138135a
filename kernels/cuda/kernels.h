// The CUDA kernels: launchers with the arguments, orders and bits of their CPU twins.
//
// Views point to device memory; spans and programs lie on the host and may go when launch_cuda
// returns. Errors are those of launch_cpu, and DeviceError when CUDA refuses a launch. What a
// kernel finds wrong with values it notes in Stream::fault.
#pragma once

#include "accrue/kernels/adagrad.h"
#include "accrue/kernels/adam.h"
#include "accrue/kernels/attention.h"
#include "accrue/kernels/batched_matmul.h"
#include "accrue/kernels/broadcast_grad.h"
#include "accrue/kernels/compare.h"
#include "accrue/kernels/conv2d.h"
#include "accrue/kernels/copy.h"
#include "accrue/kernels/cross_entropy.h"
#include "accrue/kernels/cuda/stream.h"
#include "accrue/kernels/dropout.h"
#include "accrue/kernels/elementwise.h"
#include "accrue/kernels/embedding.h"
#include "accrue/kernels/extremum.h"
#include "accrue/kernels/index.h"
#include "accrue/kernels/lane_merges.h"
#include "accrue/kernels/layer_norm.h"
#include "accrue/kernels/linear.h"
#include "accrue/kernels/mse.h"
#include "accrue/kernels/norm.h"
#include "accrue/kernels/pool2d.h"
#include "accrue/kernels/reduce.h"
#include "accrue/kernels/rmsprop.h"
#include "accrue/kernels/row_sum.h"
#include "accrue/kernels/sgd.h"
#include "accrue/kernels/softmax.h"

namespace accrue::kernels {

void launch_cuda(const LinearForward<float>& args, cuda::Stream stream);
void launch_cuda(const LinearInputGrad<float>& args, cuda::Stream stream);
void launch_cuda(const LinearWeightGrad<float>& args, cuda::Stream stream);
void launch_cuda(const LinearBiasGrad<float>& args, cuda::Stream stream);
void launch_cuda(const Matmul<float>& args, cuda::Stream stream);
void launch_cuda(const BatchedMatmul& args, cuda::Stream stream);  ///< float32
/// float32. Scores live in a workspace of 16 MiB, or of 64 query rows where those need more.
void launch_cuda(const AttentionForward& args, cuda::Stream stream);
void launch_cuda(const AttentionBackward& args, cuda::Stream stream);

// Patches live in a workspace of 32 MiB, or of one output line where that needs more; those of the
// input's gradient, of one channel in each group.
void launch_cuda(const Conv2dForward<float>& args, cuda::Stream stream);
void launch_cuda(const Conv2dInputGrad<float>& args, cuda::Stream stream);
void launch_cuda(const Conv2dWeightGrad<float>& args, cuda::Stream stream);
void launch_cuda(const Conv2dBiasGrad<float>& args, cuda::Stream stream);
void launch_cuda(const MaxPool2d<float>& args, cuda::Stream stream);
void launch_cuda(const MaxPool2dGrad<float>& args, cuda::Stream stream);
void launch_cuda(const AvgPool2d<float>& args, cuda::Stream stream);
void launch_cuda(const AvgPool2dGrad<float>& args, cuda::Stream stream);

// A target outside [0, C) is noted in the stream's fault; its row gets NaN as loss and gradient.
void launch_cuda(const CrossEntropyForward<float>& args, cuda::Stream stream);
void launch_cuda(const CrossEntropyBackward<float>& args, cuda::Stream stream);
void launch_cuda(const LayerNormForward<float>& args, cuda::Stream stream);
void launch_cuda(const LayerNormBackward<float>& args, cuda::Stream stream);
void launch_cuda(const MseForward<float>& args, cuda::Stream stream);
void launch_cuda(const MseBackward<float>& args, cuda::Stream stream);
void launch_cuda(const SoftmaxForward<float>& args, cuda::Stream stream);
void launch_cuda(const SoftmaxBackward<float>& args, cuda::Stream stream);

void launch_cuda(const UnaryForward& args, cuda::Stream stream);
void launch_cuda(const UnaryBackward& args, cuda::Stream stream);
void launch_cuda(const BinaryForward& args, cuda::Stream stream);
void launch_cuda(const ScalarForward& args, cuda::Stream stream);
void launch_cuda(const LargerBackward& args, cuda::Stream stream);
void launch_cuda(const AddScaled& args, cuda::Stream stream);
void launch_cuda(const Compare& args, cuda::Stream stream);
void launch_cuda(const Where& args, cuda::Stream stream);

// Waits for the stream where a value may not fit its dtype.
void launch_cuda(const Copy& args, cuda::Stream stream);
void launch_cuda(const Fill& args, cuda::Stream stream);

void launch_cuda(const RowSum<float>& args, cuda::Stream stream);
void launch_cuda(const RowSum<double>& args, cuda::Stream stream);
void launch_cuda(const SumDims& args, cuda::Stream stream);
void launch_cuda(const Extremum& args, cuda::Stream stream);

void launch_cuda(const BroadcastGrad<float>& args, cuda::Stream stream);
void launch_cuda(const BroadcastGrad<double>& args, cuda::Stream stream);
void launch_cuda(const LaneMerges<float>& args, cuda::Stream stream);
void launch_cuda(const LaneMerges<double>& args, cuda::Stream stream);

// These wait for the stream.
double launch_cuda(const SquareSum& args, cuda::Stream stream);
double launch_cuda(const MaxAbs& args, cuda::Stream stream);
Nonfinite launch_cuda(const FindNonfinite& args, cuda::Stream stream);

// An index that is no row of the table is noted in the stream's fault, and gives NaN or is skipped.
void launch_cuda(const EmbeddingForward<float>& args, cuda::Stream stream);
void launch_cuda(const EmbeddingGrad<float>& args, cuda::Stream stream);

// An index out of range is noted in the stream's fault, and gives 0 or is skipped.
void launch_cuda(const Gather& args, cuda::Stream stream);
void launch_cuda(const ScatterAdd& args, cuda::Stream stream);

void launch_cuda(const DropoutMask& args, cuda::Stream stream);  ///< float32

void launch_cuda(const AdagradStep<float>& args, cuda::Stream stream);
void launch_cuda(const AdamStep<float>& args, cuda::Stream stream);
void launch_cuda(const RmspropStep<float>& args, cuda::Stream stream);
void launch_cuda(const SgdStep<float>& args, cuda::Stream stream);

}  // namespace accrue::kernels
