"""Reads what nvcc makes of the kernels: forbidden PTX, and registers and memory against a budget.

Run: ptx.py lint|violations|budget|write-budget <nvcc> <include folder> <file.cu>... -- <nvcc option>...

lint        no kernel has an instruction whose result is not fixed by IEEE 754 or that leaves registers,
            but for what DOUBLE and LIBRARY allow
violations  each kernel of ptx_violations.cu, named after the rule it breaks, is found
budget      no spills, no stack, registers and shared memory at most 5 % above budget.txt
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

RULES = {
    "approximate": r".*\.approx",
    "flushes_denormals": r".*\.ftz",
    "inexact_division": r"div\.full",
    "contractible": r"(add|sub|mul)\.f(32|64)",  # no rounding: ptxas may fuse it
    "other_rounding": r"(add|sub|mul|fma|div|sqrt|rcp)\.(rz|rm|rp)",
    "float_atomic": r"(atom|red)\..*\.f(16|32|64)",
    "double_precision": r".*\.f64",
    "local_memory": r"(ld|st)\.local|\.local ",
    "calls": r"call",
    "fences": r"membar|fence",
    "named_barrier": r"(bar|barrier)\.\S+\s+(?!\s|0;)",
}
# Kernels that compute in double on purpose, by IEEE operations alone.
DOUBLE = r"\bdouble\b|Pow|Convert|survey"
# Elementwise functions of float64 lie outside the contract: they are the C library's.
LIBRARY = r"map_kernel<double|__internal_accurate_pow"
LIBRARY_RULES = {"approximate", "flushes_denormals", "calls", "double_precision"}
BUDGET = pathlib.Path(__file__).with_name("budget.txt")
ARCHITECTURES = ("80", "90", "100")
SLACK = 1.05

action, nvcc, include = sys.argv[1:4]
split = sys.argv.index("--")
files, options = sys.argv[4:split], sys.argv[split + 1 :]


def compile_file(file, *more):
    """Returns what nvcc wrote to its output file and to stderr."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        command = [nvcc, "-std=c++20", "-O3", "-I", include, *options, *more, file, "-o", out]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return out.read_bytes(), done.stderr


def short_names(mangled):
    """Readable names without namespaces, return types and arguments."""
    names = subprocess.run(
        ["c++filt", *mangled], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    short = []
    for name in names:
        name = re.sub(r"\(anonymous namespace\)::|accrue::|kernels::|cuda::|^void ", "", name)
        short.append(re.sub(r"\((int|bool)\)", "", name).split("(")[0])
    return short


def is_allowed(kernel, rule):
    if rule == "double_precision" and re.search(DOUBLE, kernel):
        return True
    return re.match(LIBRARY, kernel) and rule in LIBRARY_RULES


def lint(file):
    """Returns (kernel, rule, instruction) for each broken rule of each architecture's PTX."""
    found = set()
    for architecture in ARCHITECTURES:
        ptx = compile_file(file, "-ptx", f"-arch=compute_{architecture}")[0].decode()
        kernel = ""
        for line in ptx.splitlines():
            if match := re.search(r"\.entry (\w+)|\.func .*\) *(\w+)\(?$", line):
                kernel = match.group(1) or match.group(2)
            instruction = re.sub(r"^@!?%p\d+\s+", "", line.strip())
            for rule, pattern in RULES.items():
                if re.match(pattern, instruction):
                    found.add((kernel, rule, instruction))
    found = sorted(found)
    names = short_names([mangled for mangled, _, _ in found])
    faults = [(name, *fault[1:]) for name, fault in zip(names, found)]
    return [fault for fault in faults if not is_allowed(*fault[:2])]


def check_lint():
    faults = sorted({fault for file in files for fault in lint(file)})
    for kernel, rule, instruction in faults:
        print(f"{kernel}: {rule}: {instruction}")
    print(f"{len(files)} files, {len(ARCHITECTURES)} architectures, {len(faults)} faults")
    return not faults


def check_violations():
    found = collections.defaultdict(set)
    for file in files:
        for kernel, rule, _ in lint(file):
            found[kernel].add(rule)
    silent = [rule for rule in RULES if rule not in found[f"violates_{rule}"]]
    for rule in silent:
        print(f"not found: {rule}")
    if found["clean"]:
        print(f"found in the clean kernel: {found['clean']}")
    print(f"{len(RULES) - len(silent)} of {len(RULES)} planted violations found")
    return not silent and not found["clean"]


def resources():
    """Returns {(architecture, kernel): (registers, shared bytes, stack and spill bytes)}."""
    targets = [f"-gencode=arch=compute_{it},code=sm_{it}" for it in ARCHITECTURES]
    keys, values = [], []
    for file in files:
        report = compile_file(file, "-c", "-Xptxas=-v", *targets)[1]
        for part in re.split(r"(?=Compiling entry function)", report)[1:]:
            keys.append(re.search(r"function '(\w+)' for 'sm_(\d+)'", part).groups())
            frames = sum(int(n) for n in re.findall(r"(\d+) bytes (?:stack|spill)", part))
            registers = int(re.search(r"Used (\d+) registers", part).group(1))
            shared = re.search(r"(\d+) bytes smem", part)
            values.append((registers, int(shared.group(1)) if shared else 0, frames))
    names = short_names([mangled for mangled, _ in keys])
    return {(keys[i][1], names[i]): values[i] for i in range(len(keys))}


def read_budget():
    lines = [line for line in BUDGET.read_text().splitlines() if not line.startswith("#")]
    fields = [line.split(None, 3) for line in lines]
    return {(arch, name): (int(regs), int(shared)) for arch, regs, shared, name in fields}


def check_budget():
    used, budget, faults = resources(), read_budget(), []
    for key in sorted(used.keys() | budget.keys()):
        if key not in used or key not in budget:
            faults.append(f"{key}: in {'budget.txt' if key in budget else 'the build'} only")
            continue
        registers, shared, frames = used[key]
        if frames > 0:
            faults.append(f"{key}: {frames} bytes of stack and spills")
        if registers > SLACK * budget[key][0] or shared > SLACK * budget[key][1]:
            faults.append(f"{key}: {registers} registers, {shared} bytes, budget {budget[key]}")
    for fault in faults:
        print(fault)
    print(f"{len(used)} kernels, {len(faults)} faults")
    return not faults


def write_budget():
    lines = ["# architecture, registers, bytes of shared memory, kernel; written by ptx.py"]
    for (arch, name), (registers, shared, _) in sorted(resources().items()):
        lines.append(f"{arch} {registers} {shared} {name}")
    BUDGET.write_text("\n".join(lines) + "\n")
    return True


actions = {
    "lint": check_lint,
    "violations": check_violations,
    "budget": check_budget,
    "write-budget": write_budget,
}
sys.exit(0 if actions[action]() else 1)
