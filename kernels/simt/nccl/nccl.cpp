#include "accrue/kernels/simt/nccl/nccl.h"

#include "accrue/kernels/simt/devices.h"
#include "accrue/kernels/simt/nccl/communicator.h"

#include <algorithm>
#include <utility>

using accrue::simt::nccl::Meeting;
using accrue::simt::nccl::Operation;

namespace {

/// Operations that go together.
struct Batch {
  ncclComm_t comm;
  cudaStream_t stream;
  std::vector<Operation> operations;
};

/// The open group of this thread.
struct OpenGroup {
  int depth = 0;
  ncclResult_t result = ncclSuccess;
  std::vector<Batch> batches;
};

thread_local OpenGroup group;

ncclResult_t close_group() {
  std::vector<Batch> batches = std::exchange(group.batches, {});
  ncclResult_t result = std::exchange(group.result, ncclSuccess);
  for (const Batch& batch : batches) batch.comm->set_issuer({});
  for (Batch& batch : batches) {
    if (result != ncclSuccess && result != ncclInProgress) break;
    result = batch.comm->run(std::move(batch.operations), batch.stream);
  }
  return result;
}

ncclResult_t add(ncclComm_t comm, cudaStream_t stream, const Operation& operation) {
  const bool is_usable = comm != nullptr && (operation.bytes() == 0 || operation.from != nullptr ||
                                             operation.to != nullptr);
  const ncclResult_t result = is_usable ? comm->check_ready() : ncclInvalidArgument;
  if (result != ncclSuccess) {
    if (group.depth > 0) group.result = result;
    return result;
  }
  auto at = std::find_if(group.batches.begin(), group.batches.end(), [&](const Batch& batch) {
    return batch.comm == comm && batch.stream == stream;
  });
  if (at == group.batches.end()) at = group.batches.insert(at, {comm, stream, {}});
  comm->set_issuer(std::this_thread::get_id());
  at->operations.push_back(operation);
  return group.depth > 0 ? ncclSuccess : close_group();
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = 22809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) { return Meeting::found(*id); }

ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (nranks < 1 || nranks > Meeting::kMaxRanks || rank < 0 || rank >= nranks) {
    return ncclInvalidArgument;
  }
  *comm = new ncclComm;
  return (*comm)->start(nranks, id, rank, config == nullptr || config->blocking != 0);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  *result = comm->poll();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const ncclResult_t result = comm->check_ready();
  return result == ncclSuccess ? ncclInProgress : result;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  comm->leave();
  delete comm;
  accrue::simt::use_device();
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->abort();
  delete comm;
  accrue::simt::use_device();
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error",
                                    "unhandled system error",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "remote process exited or there was a network error",
                                    "NCCL operation in progress"};
  return kTexts[result];
}

const char* ncclGetLastError(ncclComm_t comm) {
  thread_local std::string text;
  text = comm == nullptr ? "" : comm->last_error();
  return text.c_str();
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return ncclInvalidUsage;
  return --group.depth > 0 ? ncclSuccess : close_group();
}

ncclResult_t ncclSend(const void* data,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {Operation::send, data, nullptr, count, type, peer});
}

ncclResult_t ncclRecv(void* data,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream, {Operation::receive, nullptr, data, count, type, peer});
}

ncclResult_t ncclAllReduce(const void* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           ncclRedOp_t,
                           ncclComm_t comm,
                           cudaStream_t stream) {
  if (type == ncclUint8) return ncclInvalidArgument;  // enough for this project
  return add(comm, stream, {Operation::all_reduce, from, to, count, type, 0});
}
