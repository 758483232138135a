// Output: what a job prints, on its way to stdout, so that a stdout that takes none is noticed.
#pragma once

#include <array>
#include <cstddef>

namespace accrue::tools {

/// A pipe to stdout. What stdout does not take is lost.
class Output {
 public:
  /// Errors: ProgramEnd when the system gives no pipe.
  Output();
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  /// In the child that prints: makes the pipe its stdout.
  void become_stdout() const;
  /// In the parent, when the child has the pipe.
  void close_writer();
  /// Moves a piece when there is one, before `wake` can be read or 200 ms pass.
  void move_or_wait(int wake);
  /// Moves the rest of a job that has ended. A stdout that is stuck is waited for, unless hurried.
  void finish(bool is_hurried);
  /// What the first write that failed left in errno, or 0.
  int error() const { return error_; }

 private:
  /// As many bytes as a pipe that is ready takes without waiting.
  static constexpr std::size_t kPiece = 4096;

  void read_piece();
  void write_piece();
  void close_reader();
  bool is_empty() const { return begin_ == end_; }

  int reader_ = -1, writer_ = -1;
  std::array<char, kPiece> piece_{};
  std::size_t begin_ = 0, end_ = 0;  ///< of what was read and not written yet
  int error_ = 0;
};

}  // namespace accrue::tools
