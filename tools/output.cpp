#include "accrue/tools/output.h"

#include "accrue/bench/support/program.h"
#include "accrue/core/error.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace accrue::tools {
namespace {

bool is_temporary(int error) { return error == EAGAIN || error == EINTR; }

void close_once(int& descriptor) {
  if (descriptor >= 0) close(std::exchange(descriptor, -1));
}

}  // namespace

Output::Output() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw bench::ProgramEnd{bench::kOutOfMemory, text("cannot open a pipe: ", strerror(errno))};
  }
  reader_ = ends[0];
  writer_ = ends[1];
  fcntl(reader_, F_SETFL, O_NONBLOCK);
}

Output::~Output() {
  close_reader();
  close_writer();
}

void Output::become_stdout() const { dup2(writer_, STDOUT_FILENO); }

void Output::close_writer() { close_once(writer_); }

void Output::close_reader() { close_once(reader_); }

void Output::move_or_wait(int wake) {
  pollfd next = {.fd = reader_, .events = POLLIN, .revents = 0};  // none when the pipe is closed
  if (!is_empty()) next = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  pollfd both[] = {next, {.fd = wake, .events = POLLIN, .revents = 0}};
  if (poll(both, 2, 200) <= 0 || both[0].revents == 0) return;
  is_empty() ? read_piece() : write_piece();
}

void Output::finish(bool is_hurried) {
  while (true) {
    if (is_empty()) read_piece();
    if (is_empty()) return;
    pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
    if (poll(&out, 1, is_hurried ? 0 : -1) == 0) return;
    write_piece();
  }
}

void Output::read_piece() {
  if (reader_ < 0) return;
  const ssize_t count = read(reader_, piece_.data(), piece_.size());
  begin_ = 0;
  end_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  if (count == 0 || (count < 0 && !is_temporary(errno))) close_reader();
}

void Output::write_piece() {
  const ssize_t count = write(STDOUT_FILENO, piece_.data() + begin_, end_ - begin_);
  if (count >= 0) {
    begin_ += static_cast<std::size_t>(count);
  } else if (!is_temporary(errno)) {
    if (error_ == 0) error_ = errno;
    begin_ = end_;
  }
}

}  // namespace accrue::tools
