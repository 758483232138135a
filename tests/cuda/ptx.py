"""Reads what nvcc made of the kernels: forbidden PTX, resources and machine code against budgets.

Run: ptx.py lint|budget|sass|violations|write-budget <library>

lint        no kernel has an instruction whose result is not fixed by IEEE 754 or that leaves registers,
            but for what DOUBLE and LIBRARY allow
budget      no spills, no stack, registers and shared memory at most 5 % above budget.txt
sass        products and cross-entropy have the loads of 16 bytes and the density of FFMA of sass.txt
violations  each kernel of ptx_violations.cu, named after the rule it breaks, is found
"""
import collections
import pathlib
import re
import subprocess
import sys

import device_code

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
    "named_barrier": r"(bar|barrier)\.(?!warp)\S+\s+(?!\s|0;)",
}
# Kernels that compute in double on purpose, by IEEE operations alone.
DOUBLE = r"\bdouble\b|Pow|Convert|survey"
# Elementwise functions of float64 lie outside the contract: they are the C library's.
LIBRARY = r"map_kernel<double|__internal_accurate_pow"
LIBRARY_RULES = {"approximate", "flushes_denormals", "calls", "double_precision"}
# Kernels whose machine code is looked at.
WATCHED = r"product_kernel|(kept_)?row_kernel<\d+, (For|Back)ward>"
BUDGET = pathlib.Path(__file__).with_name("budget.txt")
SASS = pathlib.Path(__file__).with_name("sass.txt")
ARCHITECTURES = ["100", "80", "90"]
SLACK = 1.05

action, library = sys.argv[1], pathlib.Path(sys.argv[2])


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


def check_architectures(found):
    if sorted(found) != ARCHITECTURES:
        sys.exit(
            f"{library} must be for {ARCHITECTURES}, got {sorted(found)}; "
            "configure with -U CMAKE_CUDA_ARCHITECTURES"
        )


def lint():
    """Returns (kernel, rule, instruction) for each broken rule of each architecture's PTX."""
    found, architectures = set(), set()
    for architecture, ptx in device_code.ptx(library):
        architectures.add(architecture)
        kernel = ""
        for line in ptx.splitlines():
            if match := re.search(r"\.entry (\w+)|\.func .*\) *(\w+)\(?$", line):
                kernel = match.group(1) or match.group(2)
            instruction = re.sub(r"^@!?%p\d+\s+", "", line.strip())
            for rule, pattern in RULES.items():
                if re.match(pattern, instruction):
                    found.add((kernel, rule, instruction))
    check_architectures(architectures)
    found = sorted(found)
    names = short_names([mangled for mangled, _, _ in found])
    faults = [(name, *fault[1:]) for name, fault in zip(names, found)]
    return [fault for fault in faults if not is_allowed(*fault[:2])]


def read_kernels():
    """Returns {(architecture, name): kernel}."""
    kernels = device_code.kernels(library)
    names = short_names([kernel.name for kernel in kernels])
    found = {(kernel.architecture, name): kernel for kernel, name in zip(kernels, names)}
    check_architectures({architecture for architecture, _ in found})
    return found


def read_table(path):
    """Returns {(architecture, name): numbers} of a file that write_budget() wrote."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    fields = [re.fullmatch(r"(\d+) ([\d ]+) (\D.*)", line).groups() for line in lines]
    table = {(arch, name): [int(n) for n in numbers.split()] for arch, numbers, name in fields}
    if len(table) < len(fields):
        raise ValueError(f"{path}: a kernel has two lines")
    return table


def resources(kernels):
    return {key: [kernel.registers, kernel.shared] for key, kernel in kernels.items()}


def machine_code(kernels):
    """Returns {key: [loads of 16 bytes, global and shared, densest FFMA]} of watched kernels."""
    return {
        key: [
            device_code.count_loads(kernel, device_code.LDG),
            device_code.count_loads(kernel, device_code.LDS),
            device_code.densest_ffma(kernel),
        ]
        for key, kernel in kernels.items()
        if re.match(WATCHED, key[1])
    }


def is_above(used, budget):
    return any(n > SLACK * most for n, most in zip(used, budget))


def is_below(used, minimum):
    return used[0] < minimum[0] or used[1] < minimum[1] or SLACK * used[2] < minimum[2]


def compare(used, table, is_fault):
    """Returns a line for each kernel that is in one of both only or is_fault(used, table)."""
    faults = []
    for key in sorted(used.keys() | table.keys()):
        if key not in used or key not in table:
            faults.append(f"{key}: in {'the table' if key in table else 'the build'} only")
        elif is_fault(used[key], table[key]):
            faults.append(f"{key}: {used[key]}, committed {table[key]}")
    return faults


def frames(kernels):
    used = {key: kernel.frame for key, kernel in kernels.items()}
    return [f"{key}: {n} bytes of stack and spills" for key, n in used.items() if n > 0]


def report(what, faults):
    for fault in faults:
        print(fault)
    print(f"{what}, {len(faults)} faults")
    return not faults


def check_lint():
    faults = [f"{kernel}: {rule}: {instruction}" for kernel, rule, instruction in lint()]
    return report(f"PTX of {len(ARCHITECTURES)} architectures", faults)


def check_budget():
    kernels = read_kernels()
    faults = compare(resources(kernels), read_table(BUDGET), is_above)
    return report(f"{len(kernels)} kernels", frames(kernels) + faults)


def check_sass():
    used = machine_code(read_kernels())
    return report(f"{len(used)} kernels", compare(used, read_table(SASS), is_below))


def check_violations():
    found = collections.defaultdict(set)
    for kernel, rule, _ in lint():
        found[kernel].add(rule)
    faults = [f"not found: {rule}" for rule in RULES if rule not in found[f"violates_{rule}"]]
    faults += [f"found in the clean kernel: {rule}" for rule in found["clean"]]

    kernels = read_kernels()
    code = machine_code(kernels)
    for arch in ARCHITECTURES:
        wide, narrow = (arch, "product_kernel_wide"), (arch, "product_kernel_narrow")
        if min(code[wide]) == 0 or not is_below(code[narrow], code[wide]):
            faults.append(f"not found: {narrow} has {code[narrow]}, not {code[wide]}")
        if kernels[arch, "takes_stack"].frame == 0:
            faults.append(f"not found on {arch}: a stack")
        if kernels[wide].shared != 512 or not 8 <= kernels[wide].registers <= 64:
            faults.append(f"misread: {kernels[wide][:-1]}")
    return report(f"{len(RULES)} planted violations of PTX, 2 of code", faults)


def write_budget():
    kernels = read_kernels()
    for path, columns, table in (
        (BUDGET, "registers, bytes of shared memory", resources(kernels)),
        (SASS, "LDG.128, LDS.128, % of FFMA in the densest 64 instructions", machine_code(kernels)),
    ):
        lines = [f"# architecture, {columns}, kernel; written by ptx.py"]
        for (architecture, name), numbers in sorted(table.items()):
            lines.append(" ".join([architecture, *map(str, numbers), name]))
        path.write_text("\n".join(lines) + "\n")
    return True


actions = {
    "lint": check_lint,
    "budget": check_budget,
    "sass": check_sass,
    "violations": check_violations,
    "write-budget": write_budget,
}
sys.exit(0 if actions[action]() else 1)
