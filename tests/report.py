"""The report of ./dev test-all, from what ctest wrote per preset.

Run: report.py <folder of the builds>
"""
import collections
import datetime
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
PRESETS = ("release", "asan", "tsan", "simulated", "simulated-asan", "simulated-race", "cuda")
build = pathlib.Path(sys.argv[1])


def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.stdout.strip()


def read_tests(path):
    """Returns [(name, outcome, seconds, output)] of a report of ctest."""
    tests = []
    for test in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        outcome = test.get("status")
        skipped = test.find("skipped")  # also where there is no program, which is no reason
        if skipped is not None and skipped.get("message").startswith(("SKIP_", "Disabled")):
            outcome = "left out"
        output = test.findtext("system-out") or ""
        tests.append((test.get("name"), outcome, float(test.get("time")), output))
    return tests


def commit_of(preset):
    return (build / ("release" if preset == "clang-tidy" else preset) / "tested").read_text().strip()


def row_of(preset, tests):
    count = collections.Counter(outcome for _, outcome, _, _ in tests)
    seconds = sum(seconds for _, _, seconds, _ in tests)
    longest = max(tests, key=lambda test: test[2])
    bad = len(tests) - count["run"] - count["left out"]
    return (f"| {preset} | {commit_of(preset)} | {len(tests)} | {count['run']} | {bad} | {count['left out']} "
            f"| {seconds:.0f} | {longest[0]}, {longest[2]:.0f} s |")


def messages_of(tests):
    """What tests said they covered: "name: 12 shapes under 8 schedules"."""
    lines = set()
    for name, _, _, output in tests:
        lines |= {f"{name}: {said}" for said in re.findall(r"MESSAGE: (.*)", output)}
    return sorted(lines)


results = {name: read_tests(build / name / "tests.xml") for name in PRESETS
           if (build / name / "tests.xml").exists()}
results["clang-tidy"] = read_tests(build / "release/tidy.xml")
coverage = (build / "coverage.txt").read_text().strip().split("\n")[-1].strip()
model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
print(f"""# Report of ./dev test-all

{datetime.date.today()}, {model[1] if model else "unknown processor"}, {os.cpu_count()} cores, no GPU;
{said("g++", "--version").splitlines()[0]}; {(said("nvcc", "--version").splitlines() or ["no nvcc"])[-1]}

| preset | commit | tests | passed | failed | left out | seconds of all tests | longest |
|---|---|---|---|---|---|---|---|""")
for preset, tests in results.items():
    print(row_of(preset, tests))

print("\n## Failed\n")
failed = [f"- {preset}: {name}" for preset, tests in results.items()
          for name, outcome, _, _ in tests if outcome not in ("run", "left out")]
failed += [f"- {preset}: there is no report" for preset in PRESETS
           if preset not in results and (preset != "cuda" or shutil.which("nvcc"))]
if not coverage.endswith(" 0 faults"):
    failed.append(f"- coverage: {coverage}")
print("\n".join(failed) or "None.")

print("\n## Left out\n")
left_out = [f"- {preset}: {name}: {(output.strip().splitlines() or ['no reason printed'])[-1]}"
            for preset, tests in results.items()
            for name, outcome, _, output in tests if outcome == "left out"]
print("\n".join(left_out) or "None.")

print("\n## Lines of the CUDA part that ran in the simulator\n\n```")
print(f"{coverage}\n```")
for preset in ("simulated", "simulated-asan", "simulated-race"):
    print(f"\n## What the tests of `{preset}` covered\n")
    print("\n".join(f"- {line}" for line in messages_of(results.get(preset, []))))
