#include "accrue/bench/support/child.h"

#include "accrue/bench/support/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace accrue::bench {

Child::Child(std::vector<std::string> command) : name_(command.at(0)) {
  std::signal(SIGPIPE, SIG_IGN);  // ask() reports a child that has ended
  std::array<int, 2> down{}, up{};
  if (pipe2(down.data(), O_CLOEXEC) != 0 || pipe2(up.data(), O_CLOEXEC) != 0)
    throw ProgramEnd{kInternal, "cannot make a pipe"};
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, down[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, up[1], STDOUT_FILENO);
  const int error =
      posix_spawnp(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(down[0]);
  close(up[1]);
  to_ = fdopen(down[1], "w");
  from_ = fdopen(up[0], "r");
  if (error != 0) process_ = 0;
}

Child::~Child() {
  std::fclose(to_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
  std::fclose(from_);
}

std::string Child::read_line() {
  std::string line;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_))
    line += static_cast<char>(c);
  return line;
}

std::string Child::ask(const std::string& line) {
  std::fputs((line + '\n').c_str(), to_);
  std::fflush(to_);
  const std::string answer = read_line();
  if (answer.empty()) throw ProgramEnd{kInternal, name_ + " has ended before its answer"};
  return answer;
}

}  // namespace accrue::bench
