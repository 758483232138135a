// accrue launch as a user meets it: exit codes, labels, signals, and what is left of a job.
#include "accrue/tests/tools/fake_mpirun.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

namespace {

using accrue::test::count;
using accrue::test::FakeMpirun;
using accrue::test::run;
using accrue::test::Run;
using accrue::test::shell;
using Clock = std::chrono::steady_clock;

/// Each rank runs a command of its own: rank 1 the first, the others the second.
Run launch_two(const std::string& one, const std::string& others, const std::string& options = "") {
  return run("accrue launch --num_processes 3 " + options +
             " bash -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then " + one + "; else " + others +
             "; fi' 2>&1");
}

/// Two ranks run a command. When it has printed "ready" on both, the launcher gets a signal.
Run signal_when_ready(int signal, const std::string& command) {
  const std::string launch = "exec ./accrue launch --num_processes 2 bash -c '" + command + "'";
  std::FILE* const pipe = popen(("cd " ACCRUE_PROGRAMS " && echo $$ && " + launch).c_str(), "r");
  REQUIRE(pipe);
  pid_t launcher = 0;
  Run result;
  for (char line[256]; std::fgets(line, sizeof line, pipe);) {
    if (launcher == 0) {
      launcher = std::atoi(line);
      REQUIRE(launcher > 0);
      continue;
    }
    result.output += line;
    if (count(line, "ready") == 1 && count(result.output, "ready\n") == 2) kill(launcher, signal);
  }
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

/// Whether a process runs `sleep <seconds>`. Each test sleeps for a time of its own.
bool is_sleeping(const std::string& seconds) {
  std::error_code error;  // processes come and go
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    std::ifstream file(entry.path() / "cmdline");
    std::string program, argument;
    std::getline(file, program, '\0');
    std::getline(file, argument, '\0');
    if (program == "sleep" && argument == seconds) return true;
  }
  return false;
}

void check_refused(const std::string& arguments, int code, const std::string& message) {
  CAPTURE(arguments);
  const Run result = run("accrue " + arguments + " 2>&1");
  CHECK(result.code == code);
  CHECK(result.output == "accrue: " + message + "\n");
}

}  // namespace

TEST_CASE("tools.launch: N ranks run, share the cores, and their exit code 0 is the job's") {
  const Run result =
      run("accrue launch --num_processes 3 --cpu --mixed_precision no bash -c "
          "'echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE threads $ACCRUE_NUM_THREADS'");
  CHECK(result.code == 0);
  for (const char* const rank : {"0", "1", "2"}) {
    CHECK(count(result.output, "rank " + std::string(rank) + " of 3 threads ") == 1);
  }
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  CHECK(count(result.output, "threads " + std::to_string(std::max(1, cores / 3)) + "\n") == 3);
  CHECK(shell("ACCRUE_NUM_THREADS=7 ./accrue launch printenv ACCRUE_NUM_THREADS").output == "7\n");
}

TEST_CASE("tools.launch: --cpu is stronger than the device that the environment names") {
  const std::string environment = "ACCELERATE_TORCH_DEVICE=cuda ./accrue launch ";
  const std::string program = "printenv ACCELERATE_TORCH_DEVICE";
  CHECK(shell(environment + program).output == "cuda\n");
  CHECK(shell(environment + "--cpu " + program).output == "cpu\n");
}

TEST_CASE("tools.launch: the program gets its arguments as they are") {
  CHECK(run("accrue launch --num_processes=1 printf '%s|' --label -n 'a b' ''").output ==
        "--label|-n|a b||");
}

TEST_CASE("tools.launch: -- may stand before the program") {
  CHECK(run("accrue launch --num_processes 1 -- echo -- word").output == "-- word\n");
}

TEST_CASE("tools.launch: labels name the rank of each line") {
  const Run result = run("accrue launch --num-processes 2 --label echo word");
  CHECK(result.output.size() == 2 * std::string("[1,0]<stdout>:word\n").size());
  CHECK(count(result.output, "[1,0]<stdout>:word\n") == 1);
  CHECK(count(result.output, "[1,1]<stdout>:word\n") == 1);
}

TEST_CASE("tools.launch: the code of the rank that fails first is the job's") {
  for (const int code : {1, 70, 75, 76, 78}) {
    CHECK(launch_two("exit " + std::to_string(code), "sleep 61").code == code);
  }
}

TEST_CASE("tools.launch: a killed rank is named, the others may speak, and the code is 75") {
  const Run result = launch_two("kill -9 $$", "sleep 0.3 && echo last words; sleep 62");
  CHECK(result.code == 75);
  CHECK(count(result.output, "accrue: rank 1 was killed by signal 9 (Killed)\n") == 1);
  CHECK(count(result.output, "last words\n") == 2);
  CHECK(!is_sleeping("62"));
}

TEST_CASE("tools.launch: a killed rank's code is the job's, whatever the others return at once") {
  CHECK(launch_two("kill -9 $$", "sleep 0.3; exit 9").code == 75);
}

TEST_CASE("tools.launch: stopped ranks and ranks that ignore signals end with the job") {
  const Clock::time_point start = Clock::now();
  CHECK(launch_two("kill -STOP $$", "sleep 0.2; exit 75").code == 75);
  CHECK(launch_two("exit 76", "trap \"\" TERM INT; sleep 63; sleep 63").code == 76);
  CHECK(Clock::now() - start < std::chrono::seconds(20));
  CHECK(!is_sleeping("63"));
}

TEST_CASE("tools.launch: what ranks leave running ends with them") {
  CHECK(launch_two("setsid sleep 64 & exit 0", "(setsid nohup sleep 64 &) ; exit 0").code == 0);
  CHECK(!is_sleeping("64"));
}

TEST_CASE("tools.launch: SIGTERM and SIGINT reach each rank once") {
  for (const auto& [signal, name] : {std::pair(SIGTERM, "TERM"), std::pair(SIGINT, "INT")}) {
    const std::string got = std::string("got ") + name;
    const std::string trap = "trap \"echo " + got + "; exit 5\" " + name;
    const Run result =
        signal_when_ready(signal, trap + "; echo ready; while :; do sleep 0.05; done");
    CHECK(result.code == 5);
    CHECK(count(result.output, got + "\n") == 2);
  }
  CHECK(signal_when_ready(SIGTERM, "echo ready; exec sleep 65").code == 75);
  CHECK(!is_sleeping("65"));
}

TEST_CASE("tools.launch: the job ends with a launcher that is killed") {
  CHECK(signal_when_ready(SIGKILL, "echo ready; exec sleep 66").code == -1);
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(10);
  while (is_sleeping("66") && Clock::now() < deadline) std::this_thread::yield();
  CHECK(!is_sleeping("66"));
}

TEST_CASE("tools.launch: what cannot work is refused with what to do") {
  check_refused("launch", 64, "launch needs a program; --help lists the options");
  check_refused("launch --num_processes 0 true",
                64,
                "--num_processes must be an integer in [1, 2147483647], got '0'; --help lists the "
                "options");
  check_refused("launch --mixed_precision fp8 true",
                78,
                "[accelerator] mixed_precision must be no, bf16 or fp16, got 'fp8'");
  check_refused("launch --num_machines 2 --num_processes 2 true",
                78,
                "--num_machines 2 needs --hostfile FILE with the name of each machine on a line, "
                "reached by ssh");
  check_refused("launch --num_machines 2 --machine_rank 2 true",
                78,
                "machine_rank must be below num_machines 2, got 2");
  check_refused("launch --num_machines 2 --num_processes 2 --machine_rank 1 true",
                78,
                "the job must be launched on machine 0, which starts all others, got "
                "--machine_rank 1");
  check_refused("launch --hostfile /none true", 66, "cannot read the hostfile /none");
  check_refused("launch --hostfile . true", 66, "cannot read the hostfile .");
  check_refused("launch --config_file . true", 66, "cannot read the configuration .");
  check_refused("launch ./none", 66, "there is no program './none'");
  check_refused("launch ''", 66, "there is no program ''");
  check_refused("launch .", 66, "'.' is a directory, not a program");
  const std::string file = "cmake_install.cmake";  // of the folder in which the programs lie
  check_refused(
      "launch ./" + file, 66, "./" + file + " may not be executed; type chmod +x ./" + file);
  check_refused("launch " + file,
                66,
                "there is no " + file + " in PATH; type ./" + file + " for the one in this folder");
  check_refused("launch -n 2 true", 64, "there is no option -n; --help lists the options");
  check_refused("env now", 64, "there is nothing to do with 'now'; --help lists the options");
  check_refused("lunch", 64, "there is no command 'lunch'; accrue --help lists the commands");
  check_refused("", 64, "give a command; accrue --help lists them");
}

TEST_CASE("tools.launch: the version is that of env") {
  const Run version = run("accrue --version");
  CHECK(version.output.starts_with("accrue "));
  const std::string number = version.output.substr(7);
  CHECK(count(run("accrue env").output, "accrue     " + number) == 1);
}

TEST_CASE("tools.launch: there is room for the files of mpirun, or the job is refused") {
  CHECK(shell("ulimit -S -n 40; ./accrue launch --num_processes 20 true").code == 0);
  const Run result = shell("ulimit -n 100; ./accrue launch --num_processes 20 true 2>&1");
  CHECK(result.code == 78);
  CHECK(result.output ==
        "accrue: 20 processes need 144 open files, got a limit of 100; raise it with ulimit -n\n");
}

TEST_CASE("tools.launch: without mpirun it says what to install") {
  const Run result = shell("PATH=/none ./accrue launch /bin/true 2>&1");
  CHECK(result.code == 78);
  CHECK(result.output ==
        "accrue: mpirun must be installed, got none in PATH; apt-get install openmpi-bin\n");
}

TEST_CASE("tools.launch: a job ends although mpirun hangs after a rank failed") {
  const FakeMpirun mpirun("while [ $1 != rank ]; do shift; done; ./accrue \"$@\"; sleep 67");
  const Clock::time_point start = Clock::now();
  CHECK(mpirun.run("accrue launch sh -c 'exit 9'").code == 9);
  CHECK(Clock::now() - start < std::chrono::seconds(10));
  CHECK(!is_sleeping("67"));
}

TEST_CASE("tools.launch: a stdout that does not take the output gives 74") {
  const auto launch = [](const std::string& command, const std::string& redirection) {
    return run("accrue launch --num_processes 1 bash -c '" + command + "' 2>&1 " + redirection);
  };
  for (const auto& [redirection, reason] : {std::pair(">/dev/full", "No space left on device"),
                                            std::pair(">&-", "Bad file descriptor")}) {
    const Run result = launch("echo word", redirection);
    CHECK(result.code == 74);
    CHECK(result.output == std::string("accrue: cannot write to stdout: ") + reason + "\n");
    CHECK(launch("trap \"\" TERM; echo word; sleep 0.5; exit 9", redirection).code == 9);
    CHECK(launch("true", redirection).code == 0);
  }
  const Clock::time_point start = Clock::now();
  const Run result = shell(
      "exec 3>&1; { ./accrue launch bash -c 'while :; do echo word; sleep 0.1; done' 2>&3; "
      "echo code $? >&3; } | head -n 1");
  CHECK(result.output == "word\naccrue: cannot write to stdout: Broken pipe\ncode 74\n");
  CHECK(Clock::now() - start < std::chrono::seconds(10));
}

TEST_CASE("tools.launch: an mpirun that fails by itself is named") {
  const Run result = FakeMpirun("exit 3").run("accrue launch true");
  CHECK(result.code == 3);
  CHECK(result.output == "accrue: mpirun ended with exit code 3\n");
  CHECK(FakeMpirun("kill -9 $$").run("accrue launch true").code == 75);
  CHECK(FakeMpirun("trap \"exit 1\" TERM; kill $PPID; sleep 5 & wait")
            .run("accrue launch true")
            .code == 75);
  CHECK(FakeMpirun("exit 137").run("accrue launch true").code == 75);
  CHECK(FakeMpirun("exit 255").run("accrue launch true").code == 255);
}

TEST_CASE("tools.launch: env prints what a bug report needs") {
  const Run result = run("accrue env");
  CHECK(result.code == 0);
  for (const char* const name : {"accrue",
                                 "compiler",
                                 "system",
                                 "CPU",
                                 "cores",
                                 "kernels",
                                 "threads",
                                 "CUDA",
                                 "MPI",
                                 "variables"}) {
    CAPTURE(name);
    CHECK(count("\n" + result.output, "\n" + std::string(name) + " ") == 1);
  }
  CHECK(count(result.output, "Open MPI") == 1);
  CHECK(count(shell("ACCRUE_ISA=portable ./accrue env").output, "portable, of this build") == 1);
}
