#include "accrue/kernels/simt/nccl/transfers.h"

#include "accrue/core/error.h"

#include <algorithm>
#include <cstring>

namespace accrue::simt::nccl {

void Transfers::send(const void* data, std::size_t bytes, int peer) {
  transfers_.push_back(
      {true, peer, static_cast<std::byte*>(const_cast<void*>(data)), bytes, 0, false});
}

void Transfers::receive(void* data, std::size_t bytes, int peer) {
  transfers_.push_back({false, peer, static_cast<std::byte*>(data), bytes, 0, false});
}

bool Transfers::are_done() const {
  return std::all_of(
      transfers_.begin(), transfers_.end(), [](const Transfer& it) { return it.is_done; });
}

int Transfers::find_gone() const {
  for (const Transfer& transfer : transfers_) {
    if (!transfer.is_done && meeting_.is_gone(transfer.peer)) return transfer.peer;
  }
  return -1;
}

/// Messages of one pair go in the order of the calls: only the first open one of each moves.
bool Transfers::advance(std::string& error) {
  bool has_moved = false;
  std::vector<char> is_sending(static_cast<std::size_t>(meeting_.num_ranks()));
  std::vector<char> is_receiving = is_sending;
  for (Transfer& transfer : transfers_) {
    if (transfer.is_done) continue;
    char& is_busy =
        (transfer.is_send ? is_sending : is_receiving)[static_cast<std::size_t>(transfer.peer)];
    if (is_busy) continue;
    has_moved |= transfer.is_send ? put(transfer) : take(transfer, error);
    is_busy = !transfer.is_done;
  }
  return has_moved;
}

bool Transfers::put(Transfer& transfer) const {
  Mailbox& box = meeting_.mailbox(meeting_.rank(), transfer.peer);
  const std::uint64_t number = box.num_put;
  if (number - box.num_taken == std::size(box.chunks)) return false;
  Mailbox::Chunk& chunk = box.chunks[number % std::size(box.chunks)];
  chunk.message_bytes = transfer.bytes;
  chunk.bytes = std::min(Mailbox::kChunkBytes, transfer.bytes - transfer.num_moved);
  if (chunk.bytes > 0) std::memcpy(chunk.data, transfer.data + transfer.num_moved, chunk.bytes);
  transfer.num_moved += chunk.bytes;
  transfer.is_done = transfer.num_moved == transfer.bytes;
  box.num_put = number + 1;
  return true;
}

bool Transfers::take(Transfer& transfer, std::string& error) const {
  Mailbox& box = meeting_.mailbox(transfer.peer, meeting_.rank());
  const std::uint64_t number = box.num_taken;
  if (box.num_put == number) return false;
  const Mailbox::Chunk& chunk = box.chunks[number % std::size(box.chunks)];
  if (chunk.message_bytes != transfer.bytes) {
    error = text("a receive of ",
                 transfer.bytes,
                 " bytes met a send of ",
                 chunk.message_bytes,
                 " bytes of rank ",
                 transfer.peer);
    return false;
  }
  if (chunk.bytes > 0) std::memcpy(transfer.data + transfer.num_moved, chunk.data, chunk.bytes);
  transfer.num_moved += chunk.bytes;
  transfer.is_done = transfer.num_moved == transfer.bytes;
  box.num_taken = number + 1;
  return true;
}

}  // namespace accrue::simt::nccl
