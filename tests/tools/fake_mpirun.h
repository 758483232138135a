// FakeMpirun: another mpirun than the installed one, to see what the command accrue makes of it.
#pragma once

#include "accrue/tests/bench/run.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace accrue::test {

/// A folder whose mpirun is the script given. The real one stands in $REAL.
class FakeMpirun {
 public:
  explicit FakeMpirun(const std::string& script)
      : folder_(std::filesystem::temp_directory_path() /
                ("accrue_mpirun_" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
    const std::filesystem::path file = folder_ / "mpirun";
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  ~FakeMpirun() { std::filesystem::remove_all(folder_); }
  FakeMpirun(const FakeMpirun&) = delete;
  FakeMpirun& operator=(const FakeMpirun&) = delete;

  Run run(const std::string& program) const {
    return shell("REAL=$(command -v mpirun) PATH=" + folder_.string() + ":$PATH ./" + program +
                 " 2>&1");
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace accrue::test
