// accrue config and launch --config_file: Accelerate's YAML, round trips and refusals.
#include "accrue/tests/bench/run.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace {

using accrue::test::count;
using accrue::test::run;
using accrue::test::Run;
using accrue::test::shell;

/// A file in the temporary folder, removed at the end.
class File {
 public:
  explicit File(const std::string& content = "")
      : path_(std::filesystem::temp_directory_path() /
              ("accrue_config_" + std::to_string(getpid()) + ".yaml")) {
    std::filesystem::remove(path_);
    if (!content.empty()) std::ofstream(path_) << content;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::string path() const { return path_.string(); }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path path_;
};

const std::string kEchoRank = " sh -c 'echo of $OMPI_COMM_WORLD_SIZE' ";

/// launch refuses the file: one line, which names it where `message` begins so, and nothing runs.
void check_refused(const std::string& content, int code, const std::string& message) {
  const File file(content);
  CAPTURE(content);
  const Run result = run("accrue launch --config_file " + file.path() + " echo ran 2>&1");
  CHECK(result.code == code);
  const bool names_file = message[0] == ':' || message[0] == ' ';
  CHECK(result.output == "accrue: " + (names_file ? file.path() : "") + message + "\n");
}

}  // namespace

TEST_CASE("tools.config: a file is written in Accelerate's keys") {
  const File file;
  const std::string all =
      "compute_environment: LOCAL_MACHINE\n"
      "distributed_type: 'MULTI_CPU'\n"
      "num_processes: 4\n"
      "num_machines: 2\n"
      "machine_rank: 1\n"
      "main_process_ip: 10.0.0.1\n"
      "main_process_port: 29500\n"
      "mixed_precision: 'no'\n"
      "use_cpu: true\n"
      "mpirun_config:\n"
      "  mpirun_hostfile: hosts\n";
  const std::string options =
      " --num_processes 4 --num_machines 2 --machine_rank 1 --main_process_ip 10.0.0.1 "
      "--main_process_port 29500 --mixed_precision no --hostfile hosts --cpu";
  CHECK(run("accrue config" + options).output == all);
  CHECK(run("accrue config --config_file " + file.path() + options).output == all);
  CHECK(file.content() == all);
}

TEST_CASE("tools.config: what is read is written back, and what is given replaces it") {
  const File file;
  const std::string config = "accrue config --config_file " + file.path();
  const std::string written = run(config + " --num_processes 6 --num_machines 3").output;
  CHECK(run(config).output == written);
  CHECK(file.content() == written);
  run(config + " --num_machines 2");
  CHECK(file.content() ==
        "compute_environment: LOCAL_MACHINE\ndistributed_type: 'MULTI_CPU'\nnum_processes: 6\n"
        "num_machines: 2\nmachine_rank: 0\nmixed_precision: 'no'\nuse_cpu: true\n");
}

TEST_CASE("tools.config: launch reads a file of Accelerate's and names the keys it skips") {
  const File file(
      "compute_environment: LOCAL_MACHINE\ndebug: false\ndistributed_type: MULTI_CPU\n"
      "downcast_bf16: 'no'\nmachine_rank: 0\nmain_process_ip: null\nmain_training_function: main\n"
      "mixed_precision: 'no'\nnum_machines: 1\nnum_processes: 2\nuse_cpu: true\n");
  const std::string launch = "accrue launch --config_file " + file.path();
  CHECK(run(launch + kEchoRank + "2> /dev/null").output == "of 2\nof 2\n");
  CHECK(run(launch + " --num_processes 1" + kEchoRank + "2> /dev/null").output == "of 1\n");
  CHECK(run(launch + kEchoRank + "2>&1 > /dev/null").output ==
        "accrue: " + file.path() +
            ": no effect here: debug, downcast_bf16, main_training_function\n");
}

TEST_CASE("tools.config: a mixed precision is kept, and launch hands it on") {
  const File file;
  const std::string config = "accrue config --config_file " + file.path();
  CHECK(count(run(config + " --mixed_precision bf16").output, "mixed_precision: 'bf16'\n") == 1);
  CHECK(run(config).output == file.content());
  const std::string launch = "./accrue launch --num_processes 2 ";
  const std::string print = " printenv ACCELERATE_MIXED_PRECISION";
  const std::string from_file = launch + "--config_file " + file.path();
  CHECK(shell(from_file + print).output == "bf16\nbf16\n");
  CHECK(shell(from_file + " --mixed_precision fp16" + print).output == "fp16\nfp16\n");
  CHECK(shell("ACCELERATE_MIXED_PRECISION=bf16 " + launch + print).output == "bf16\nbf16\n");
  CHECK(shell(launch + print).code == 1);  // not set
}

TEST_CASE("tools.config: Accelerate's -1 leaves the number of processes open") {
  const File file("distributed_type: NO\nnum_processes: -1\n");
  CHECK(run("accrue launch --config_file " + file.path() + kEchoRank).output == "of 1\n");
}

TEST_CASE("tools.config: files that contradict themselves or this build are refused") {
  check_refused("distributed_type: 'NO'\nnum_processes: 2\n",
                78,
                ": distributed_type NO contradicts num_processes 2; write MULTI_CPU");
  check_refused("distributed_type: MULTI_CPU\nuse_cpu: false\n",
                78,
                ": use_cpu false contradicts distributed_type MULTI_CPU; write true");
  check_refused("distributed_type: MULTI_GPU\n",
                78,
                ": distributed_type must be NO or MULTI_CPU in a build for the CPU, got "
                "'MULTI_GPU'; train there with --num_processes and no --config_file");
  check_refused("compute_environment: AMAZON_SAGEMAKER\n",
                78,
                ": compute_environment must be LOCAL_MACHINE, got 'AMAZON_SAGEMAKER'");
  check_refused("mixed_precision: fp8\n",
                78,
                "[accelerator] mixed_precision must be no, bf16 or fp16, got 'fp8'");
  check_refused("num_machines: 2\nnum_processes: 2\nmachine_rank: 2\n",
                78,
                "machine_rank must be below num_machines 2, got 2");
  check_refused("num_machines: 2\nnum_processes: 3\n",
                78,
                "num_processes must be a multiple of num_machines 2, got 3");
}

TEST_CASE("tools.config: files that say nothing clear are refused") {
  check_refused(
      "num_processes: two\n", 78, ": num_processes has a value of the wrong kind, got 'two'");
  check_refused("num_processes: 0\n", 78, ": num_processes must be at least 1, got 0");
  check_refused(
      "main_process_port: 70000\n", 78, ": main_process_port must be at most 65535, got 70000");
  check_refused("num_processes: [1]\n",
                78,
                ": num_processes has a value of the wrong kind, got 'a list or map'");
  check_refused(
      "num_processes: 1\nnum_processes: 2\n", 78, " must hold num_processes once, got it twice");
  check_refused("- 1\n", 78, " must hold lines of the form key: value");
  CHECK(run("accrue launch --config_file /none true 2>&1").output ==
        "accrue: cannot read the configuration /none\n");
  CHECK(run("accrue launch --config_file /none true 2> /dev/null").code == 66);
  CHECK(run("accrue config --config_file /none/file 2> /dev/null").code == 73);
}
