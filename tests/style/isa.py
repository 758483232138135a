"""Objects compiled for AVX2 or AVX-512 define nothing that the linker could hand to portable code.

A weak function (a template or inline function that was not inlined) is merged over all objects: the
copy that survives may use AVX2, and a processor without it then dies far from any kernel.
Run: isa.py <nm> <namespace> <objects>...
"""
import subprocess
import sys

nm, namespace, objects = sys.argv[1], sys.argv[2], sys.argv[3:]
output = subprocess.run(
    [nm, "-C", "--defined-only", *objects], check=True, capture_output=True, text=True
).stdout

faults, num_functions = [], 0
for line in output.splitlines():
    parts = line.split(" ", 2)
    if len(parts) < 3:
        continue
    kind, symbol = parts[1], parts[2]
    num_functions += kind in "TtW"
    if kind == "W":
        faults.append(f"weak function: {symbol}")
    elif kind == "T" and f"::{namespace}::" not in symbol:
        faults.append(f"global function outside namespace {namespace}: {symbol}")

for fault in faults:
    print(fault)
print(f"{num_functions} functions in {len(objects)} objects, {len(faults)} faults")
sys.exit(1 if faults or num_functions == 0 else 0)
