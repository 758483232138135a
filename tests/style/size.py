"""The size budget: lines per file and per function. Prints the lines per folder.

Run: size.py <repository>
"""
import collections
import re

from sources import finish, is_cpp, sources, without_comments_and_strings

# kind: (lines from which a warning is printed, lines that may not be exceeded)
BUDGET = {"header": (150, 300), "source": (250, 400), "build file": (25, 50), "function": (30, 60)}


def kind_of(path):
    if path.name == "CMakeLists.txt":
        return "build file"
    return "header" if path.suffix in {".h", ".cuh"} else "source"


def functions(code):
    """Yields (first line, number of lines) of each function at namespace or class scope."""
    scopes = []  # one entry per open brace: the function's first line, None for other scopes
    inside = 0  # depth of braces inside a function
    start = 0
    for match in re.finditer(r"[;{}]|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", code, re.M):
        token = match.group()
        if token == "{":
            head = code[start : match.start()]
            opens_scope = re.search(r"\b(namespace|class|struct|union|enum)\b(?![^<]*>)", head)
            is_function = inside == 0 and ")" in head and not opens_scope
            first = start + len(head) - len(head.lstrip())
            scopes.append(code.count("\n", 0, first) + 1 if is_function else None)
            inside += is_function or inside > 0
        elif token == "}" and scopes:
            first_line = scopes.pop()
            inside -= inside > 0
            if first_line is not None:
                yield first_line, code.count("\n", 0, match.start()) + 2 - first_line
        start = match.end()


lines_of = collections.Counter()
faults, warnings = [], 0


def judge(kind, where, lines):
    global warnings
    soft, hard = BUDGET[kind]
    warnings += lines > soft
    if lines > hard:
        faults.append(f"{where}: {kind} of {lines} lines, the limit is {hard}")
    elif lines > soft:
        print(f"  {where}: {kind} of {lines} lines, aim at {soft}")


for path, text in sources():
    num_lines = text.count("\n")
    lines_of[path.parts[0] if len(path.parts) > 1 else "."] += num_lines
    judge(kind_of(path), path, num_lines)
    if is_cpp(path):
        for first_line, length in functions(without_comments_and_strings(text)):
            judge("function", f"{path}:{first_line}", length)

for folder, count in sorted(lines_of.items()):
    print(f"{count:7} lines in {folder}")
print(f"{sum(lines_of.values()):7} lines, {warnings} warnings")
finish("size", faults)
