"""clang-format 14 agrees with every C++ source. Run: format.py <repository> [clang-format options]

The options default to a check that changes nothing; -i formats in place.
"""
import subprocess
import sys

from sources import ROOT, is_cpp, sources

options = sys.argv[2:] or ["--dry-run", "-Werror"]
files = [str(path) for path, _ in sources() if is_cpp(path)]
status = subprocess.run(["clang-format-14", *options, *files], cwd=ROOT).returncode
print(f"{len(files)} files read" + ("; mend with ./dev format" if status else ""))
sys.exit(status)
