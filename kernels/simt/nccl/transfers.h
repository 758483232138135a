// Transfers: the sends and receives of one group, moved until all are done.
#pragma once

#include "accrue/kernels/simt/nccl/meeting.h"

#include <vector>

namespace accrue::simt::nccl {

/// One message to or from `peer`.
struct Transfer {
  bool is_send = false;
  int peer = 0;
  std::byte* data = nullptr;  ///< only read by a send
  std::size_t bytes = 0;
  std::size_t num_moved = 0;
  bool is_done = false;
};

class Transfers {
 public:
  explicit Transfers(Meeting& meeting) : meeting_(meeting) {}

  void send(const void* data, std::size_t bytes, int peer);
  void receive(void* data, std::size_t bytes, int peer);
  /// Moves what can be moved now; false if nothing could. `error` says what does not fit.
  bool advance(std::string& error);
  bool are_done() const;
  /// A rank that is gone and for which a transfer waits; -1 if there is none.
  int find_gone() const;

 private:
  bool put(Transfer& transfer) const;
  bool take(Transfer& transfer, std::string& error) const;

  Meeting& meeting_;
  std::vector<Transfer> transfers_;
};

}  // namespace accrue::simt::nccl
