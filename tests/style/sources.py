"""The list of our own sources, shared by the style checks."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".py", ".cmake"}
OUTSIDE = {"build", "install", ".git"}


def sources():
    """Yields (path relative to the repository, text) of each source file."""
    for path in sorted(ROOT.rglob("*")):
        relative = path.relative_to(ROOT)
        if relative.parts[0] in OUTSIDE or not path.is_file():
            continue
        if path.suffix in SUFFIXES or path.name in {"CMakeLists.txt", "dev"}:
            yield relative, path.read_text(encoding="utf-8")


def is_cpp(path):
    return path.suffix in {".h", ".cpp", ".cu", ".cuh"}


def without_comments_and_strings(text):
    """The code alone, with the same line numbers."""
    pattern = r'R"\((?:.|\n)*?\)"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
    return re.sub(pattern, lambda match: "\n" * match.group().count("\n"), text)


def finish(name, faults):
    """Prints the faults and ends the program: 1 if there are any."""
    for fault in faults:
        print(fault)
    print(f"{name}: {len(faults)} faults")
    sys.exit(1 if faults else 0)
