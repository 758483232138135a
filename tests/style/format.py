"""clang-format 14 agrees with every C++ source. Run: CLANG_FORMAT=... format.py <repository>"""
import os
import subprocess
import sys

from sources import ROOT, is_cpp, sources

files = [str(path) for path, _ in sources() if is_cpp(path)]
print(f"{len(files)} files read; mend with ./dev format")
command = [os.environ["CLANG_FORMAT"], "--dry-run", "-Werror", *files]
sys.exit(subprocess.run(command, cwd=ROOT).returncode)
