// The part of NCCL that this project uses, with NCCL's names, as the simulator offers it.
//
// Ranks are processes or threads of one host. Stricter than NCCL: a receive must have the size of
// its send, between a call that returned ncclInProgress and the next one must lie a poll of
// ncclCommGetAsyncError(), and while a group is open only its thread polls. As NCCL does inside a
// host, a rank waits for an absent one until ncclCommAbort(); that a rank left or died shows as
// ncclRemoteError. A first group is in progress, and not queued, until its ranks have come, since
// NCCL connects them then; on the default stream a group is done when its end returns. Destroying
// and aborting make the device of their thread current again, which gives it a context.
#pragma once

#include <cstddef>

struct ncclComm;
using ncclComm_t = ncclComm*;
using cudaStream_t = struct CUstream_st*;

struct ncclUniqueId {
  char internal[128];
};

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};

enum ncclDataType_t { ncclUint8 = 1, ncclFloat32 = 7, ncclFloat64 = 8 };
enum ncclRedOp_t { ncclSum = 0 };

struct ncclConfig_t {
  int blocking;
};
#define NCCL_CONFIG_INITIALIZER \
  { 1 }

ncclResult_t ncclGetVersion(int* version);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t* config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
const char* ncclGetErrorString(ncclResult_t result);
const char* ncclGetLastError(ncclComm_t comm);

ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void* data,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void* data,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclAllReduce(const void* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           ncclRedOp_t op,
                           ncclComm_t comm,
                           cudaStream_t stream);
