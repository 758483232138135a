"""bench/gpu_check on a machine with a GPU, which stands-in commands play.

Run: gpu_check.py <repository>
"""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
COMMANDS = {
    "nvidia-smi": 'case $1 in *name*) echo "Some H100, 555.1, 80000 MiB" ;; '
                  "*compute_cap*) echo 9.0 ;; *) exit 9 ;; esac",
    "nvcc": 'echo "Cuda compilation tools, release 12.4, V12.4.1"',
    "cmake": """
case $1 in
  --build) exit 0 ;;
esac
echo "$*" > configured
mkdir -p "$4/bench/device"
cp tests/golden/kernel_hashes.txt "$4/hashes"
printf '#!/bin/sh\\ncat %s/hashes\\n' "$4" > "$4/bench/device/kernel_hashes"
printf '#!/bin/sh\\ncat rates\\n' > "$4/bench/device/kernel_rates"
chmod +x "$4"/bench/device/*""",
    "ctest": 'echo "100% tests passed, 0 tests failed out of 3"',
    "compute-sanitizer": 'echo "========= Error: Device not supported."; exit 1',
}


RATES = """{"copy": 1.0, "bytes": 8}
{"kernel": "linear", "sizes": [1, 1, 1], "counted": "flops", "work": 2, "seconds": 1.0}
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(dir=os.getcwd()))
        self.addCleanup(shutil.rmtree, self.root)
        for name in ("bench/gpu_check", "bench/device/report.py", "bench/device/torch_rates.py",
                     "tests/golden/kernel_hashes.txt"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        for name, body in COMMANDS.items():
            self.command(name, body)
        (self.root / "rates").write_text(RATES)
        (self.root / "third_party/lib/any/cmake/fmt").mkdir(parents=True)
        (self.root / "third_party/lib/any/cmake/fmt/fmt-config.cmake").touch()
        path = str(self.root / "bench/gpu_check")
        loader = importlib.machinery.SourceFileLoader("gpu_check", path)
        self.module = importlib.util.module_from_spec(
            importlib.util.spec_from_loader("gpu_check", loader))
        loader.exec_module(self.module)

    def command(self, name, body):
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def check(self, *arguments):
        check = self.module.Check(self.module.parse(["--quick", *arguments]))
        check.environment["PATH"] = f"{self.root}/bin:{os.environ['PATH']}"
        self.before = os.environ["PATH"]
        os.environ["PATH"] = check.environment["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", self.before)
        return check

    def report(self):
        """The steps' outcomes and the text of the report."""
        data, = (self.root / "bench/results").glob("*.json")
        steps = json.loads(data.read_text())["steps"]
        return {s["name"]: s["outcome"] for s in steps}, data.with_suffix(".md").read_text()

    def test_a_build_that_is_not_there_is_a_wrong_command_line(self):
        with self.assertRaises(SystemExit) as ended:
            self.module.parse(["--build", str(self.root / "absent")])
        self.assertEqual(ended.exception.code, 2)

    def test_all_steps_run_and_those_of_tools_that_cannot_are_left_out(self):
        self.assertEqual(self.check().all(), 0)
        outcomes, text = self.report()
        self.assertEqual(set(outcomes.values()), {"passed", "left out"})
        self.assertEqual(outcomes["bits"], "passed")
        self.assertEqual(outcomes["racecheck"], "left out")
        self.assertIn("Some H100", text)
        configured = (self.root / "configured").read_text()
        self.assertIn("-DCMAKE_CUDA_ARCHITECTURES=90-real", configured)
        self.assertIn(f"-Dfmt_DIR={self.root}/third_party/lib/any/cmake/fmt", configured)

    def test_the_report_says_why_a_step_failed(self):
        self.command("cmake", "echo nvcc fatal: something is wrong; exit 1")
        self.assertEqual(self.check().all(), 1)
        outcomes, text = self.report()
        self.assertEqual(outcomes, {"machine": "passed", "build": "FAILED"})
        self.assertIn("nvcc fatal: something is wrong", text)

    def test_wrong_bits_are_named_and_the_other_steps_run(self):
        self.command("cmake", COMMANDS["cmake"] + '\nsed -i "s/^..../0000/" "$4/hashes"')
        self.assertEqual(self.check().all(), 1)
        outcomes, text = self.report()
        self.assertEqual((outcomes["bits"], outcomes["tests"]), ("FAILED", "passed"))
        self.assertIn("other bits than the CPU's: ", text)

    def test_a_sanitizer_passes_where_it_watched_kernels_alone(self):
        for body, outcome in (("echo ERROR SUMMARY: 0 errors", "passed"),
                              ("echo ERROR SUMMARY: 1 error; exit 99", "FAILED"),
                              ("echo running on the CPU: any; echo ERROR SUMMARY: 0 errors", "FAILED"),
                              ("true", "FAILED")):
            with self.subTest(body):
                self.command("compute-sanitizer", body)
                shutil.rmtree(self.root / "bench/results", ignore_errors=True)
                self.check().all()
                self.assertEqual(self.report()[0]["memcheck"], outcome)

    def test_rates_without_a_kernel_fail(self):
        (self.root / "rates").write_text(RATES.splitlines()[0])
        self.assertEqual(self.check().all(), 1)
        self.assertIn("no kernel was measured", self.report()[1])

    def test_a_gpu_that_cannot_run_the_kernels_is_named(self):
        self.command("nvidia-smi", COMMANDS["nvidia-smi"].replace("9.0", "7.5"))
        self.assertEqual(self.check().all(), 1)
        self.assertIn("need compute capability 8.0, Some H100 has 7.5", self.report()[1])

    def test_a_machine_without_a_gpu_is_told_so_before_anything_is_built(self):
        self.command("nvidia-smi", "exit 9")
        self.module.DRIVER = ("/nonexistent",)
        self.assertEqual(self.check().all(), 1)
        outcomes, text = self.report()
        self.assertEqual(outcomes, {"machine": "FAILED"})
        self.assertIn("there must be a GPU and its driver", text)

    def test_a_machine_without_nvidia_smi_builds_for_the_gpu_that_is_there(self):
        self.command("nvidia-smi", "exit 1")
        self.module.DRIVER = ("/dev/null",)
        self.assertEqual(self.check().all(), 0)
        self.assertIn("CMAKE_CUDA_ARCHITECTURES=native", (self.root / "configured").read_text())

    def test_what_hangs_is_ended_with_all_it_started(self):
        check = self.check("--device", "simulated")
        with self.assertRaises(self.module.Failed):
            check.run(["sh", "-c", "echo begun; sleep 60 & echo $! > child; wait"], 1)
        self.assertEqual(check.last, "begun\n")
        child = pathlib.Path("/proc", (self.root / "child").read_text().strip(), "status")
        self.assertFalse(child.exists() and "\nState:\tS" in child.read_text())

    def test_no_step_begins_when_the_time_is_up(self):
        self.module.LIMIT = 0
        with self.assertRaisesRegex(self.module.Failed, "no time was left"):
            self.check().run(["sleep", "9"], 60)

    def test_a_fault_of_the_script_ends_one_step_alone(self):
        def broken():
            raise FileNotFoundError("gone")
        self.assertFalse(self.check().step("any", broken))
        self.assertIn("FileNotFoundError", self.report()[1])


if __name__ == "__main__":
    unittest.main()
