"""House rules that a pattern can see: names, first lines, conditions, marks, lists, test names.

Run: rules.py <repository> <build folder>
"""
import json
import pathlib
import re
import sys

from sources import ROOT, finish, is_cpp, sources

CONDITIONS_ALLOWED = ("core/config.h", "core/host_device.h", "kernels/cpu/", "kernels/cuda/")
FORBIDDEN_NAME = re.compile(r"(^|_)(utils?|helpers?|misc|common|manager|impl\d)(_|\.|$)")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\): )")
COMMANDS = pathlib.Path(sys.argv[2], "compile_commands.json").read_text()
compiled = {command["file"] for command in json.loads(COMMANDS)}
faults = []


def first_line_fault(path, text):
    if not is_cpp(path):
        return None
    header_says_it = path.suffix == ".cpp" and (ROOT / path).with_suffix(".h").is_file()
    if not re.match(r"// .+", text) and not header_says_it:
        return "opens with one sentence saying what it owns"
    if path.suffix == ".h" and "#pragma once" not in text:
        return "a header has #pragma once"
    return None


def is_built(path):
    """The build compiles the file, or lists it for where a library is present."""
    if str(ROOT / path) in compiled:
        return True
    for folder in (ROOT / path).parents:
        lists = folder / "CMakeLists.txt"
        name = str((ROOT / path).relative_to(folder))
        if lists.is_file() and name in re.split(r"[\s()]+", lists.read_text()):
            return True
    return False


def include_fault(path, text):
    """A source begins with its own header, so compiling it shows that the header needs no other."""
    own = path.with_suffix(".h")
    first = re.search(r'#include ["<](.*)[">]', text)
    if path.suffix == ".cpp" and (ROOT / own).is_file() and first.group(1) != f"accrue/{own}":
        return f"the first include is its own header, accrue/{own}"
    return None


def check_lines(path, text):
    conditions_allowed = str(path).startswith(CONDITIONS_ALLOWED)
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}:{number}"
        if not line.isascii():
            faults.append(f"{where}: ASCII only")
        if is_cpp(path) and re.match(r"\s*#\s*(el)?if", line) and not conditions_allowed:
            faults.append(f"{where}: #if stays in {', '.join(CONDITIONS_ALLOWED)}")
        if path.name != "rules.py" and UNFINISHED.search(line):
            faults.append(f"{where}: a mark of unfinished work names its issue, as in (#12):")


def check_test_names(path, text):
    expected = f"{path.parent.name}.{path.stem.removesuffix('_test')}: "
    for name in re.findall(r'TEST_CASE(?:_TEMPLATE)?\(\s*"([^"]*)"', text):
        if not name.startswith(expected) or ";" in name:
            faults.append(f'{path}: test "{name}" must begin with "{expected}" and hold no ;')


num_files = 0
for path, text in sources():
    num_files += 1
    if FORBIDDEN_NAME.search(path.name):
        faults.append(f"{path}: names say what a file owns")
    for fault in filter(None, (first_line_fault(path, text), include_fault(path, text))):
        faults.append(f"{path}: {fault}")
    if path.suffix == ".cpp" and not is_built(path):
        faults.append(f"{path}: is in no CMakeLists.txt, so nothing builds it")
    check_lines(path, text)
    if path.name.endswith("_test.cpp"):
        check_test_names(path, text)
print(f"{num_files} files read")
finish("rules", faults)
