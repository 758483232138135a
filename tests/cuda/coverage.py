"""Which lines of the CUDA part ran in the tests of the simulator: ./dev coverage.

Run: coverage.py <build folder>

Prints the share of each file and the lines that did not run. Fails below 95 % of all lines, and
unless uncovered.txt lists exactly those lines, each with its reason: "file | text of the line |
reason".
"""
import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LISTED = pathlib.Path(__file__).with_name("uncovered.txt")
FOLDERS = ("kernels/cuda", "dist/nccl")
LEAST, MOST_LISTED = 95, 40

build = pathlib.Path(sys.argv[1]).resolve()


def count_runs():
    """Returns {file: {line: whether it ran in any of its instances}}."""
    ran = collections.defaultdict(lambda: collections.defaultdict(bool))
    notes = [str(note) for folder in FOLDERS for note in (build / folder).rglob("*.gcno")]
    done = subprocess.run(
        ["gcov", "--json-format", "--stdout", *notes], capture_output=True, text=True, check=True
    )
    for part in done.stdout.splitlines():
        for file in json.loads(part)["files"]:
            # Headers are found through a link to the root.
            path = pathlib.Path(build, file["file"]).resolve()
            if not path.is_relative_to(ROOT):
                continue
            name = str(path.relative_to(ROOT))
            if name.startswith(FOLDERS):
                for line in file["lines"]:
                    ran[name][line["line_number"]] |= line["count"] > 0
    return ran


def read_listed():
    """Returns [(file, text)] of uncovered.txt."""
    entries = [line.split(" | ") for line in LISTED.read_text().splitlines() if line[:1] != "#"]
    if not all(len(entry) == 3 and all(entry) for entry in entries):
        sys.exit(f"{LISTED.name}: a line is: file | text of the line | reason")
    return [(file, text) for file, text, _ in entries]


ran = count_runs()
uncovered = []
for name, lines in sorted(ran.items()):
    source = (ROOT / name).read_text().splitlines()
    texts = {number: source[number - 1].strip() for number in lines}
    missed = [number for number in sorted(lines) if not lines[number] and texts[number] != "}"]
    uncovered += [(name, number, texts[number]) for number in missed]
    print(f"{100 * (1 - len(missed) / len(lines)):6.1f} % of {len(lines):4} lines  {name}")

total = sum(len(lines) for lines in ran.values())
share = 100 * (1 - len(uncovered) / total)
listed = collections.Counter(read_listed())
found = collections.Counter((name, text) for name, _, text in uncovered)
faults = [f"{name}:{number}: did not run: {text}" for name, number, text in uncovered
          if (name, text) not in listed]
faults += [f"{LISTED.name}: this line ran or is gone: {name} | {text}" for name, text in listed
           if found[name, text] == 0]
if share < LEAST:
    faults.append(f"{share:.1f} % of the lines ran, at least {LEAST} must")
if len(uncovered) > MOST_LISTED:
    faults.append(f"{len(uncovered)} lines did not run, at most {MOST_LISTED} may")
print("\n".join(faults))
print(f"{share:6.1f} % of {total} lines, {len(uncovered)} did not run, {len(faults)} faults")
sys.exit(1 if faults else 0)
