"""The report of bench/gpu_check: targets, the table of kernels, Markdown and JSON."""
import datetime
import json

TERA = 1e12
# Sizes that only fit one kernel: (kernel, sizes), or a kernel whatever its sizes.
# Each: least rate now, rate that is wanted, in TB/s or TFLOP/s of an H200; or in parts of what
# cuBLAS reaches on the same card, where `of_cublas`.
TARGETS = {
    ("linear", (512, 768, 3072)): {"of_cublas": True, "accept": 0.60, "stretch": 0.85},
    "linear": {"accept": 36, "stretch": 43},
    "linear_input_grad": {"accept": 36, "stretch": 43},
    "linear_weight_grad": {"accept": 36, "stretch": 43},
    "cross_entropy": {"accept": 3.3, "stretch": 4.0},
    ("cross_entropy", (8192, 128256)): {"accept": 3.6, "stretch": 3.8},
    "mse": {"accept": 3.9, "stretch": 4.4},
    "mse_and_gradient": {"accept": 3.6, "stretch": 4.1},
    "layer_norm": {"accept": 3.3, "stretch": 4.0},
    "layer_norm_backward": {"accept": 2.6, "stretch": 3.4},
    "gelu": {"accept": 3.7, "stretch": 4.1},
    "gelu_backward": {"accept": 3.7, "stretch": 4.1},
    "embedding": {"accept": 3.3, "stretch": 4.0},
    "embedding_grad": {"accept": 1.9, "stretch": 2.9},
    "adamw": {"accept": 3.8, "stretch": 4.2},
}
# What the order of sums costs: a kernel, and the same work without the order.
TAXES = (("linear_weight_grad_8_lanes", "linear_weight_grad"),)
SMALL_LAYERS = {("linear_input_grad", (512, 768, 3072)), ("linear_weight_grad", (512, 768, 3072))}


def target_of(kernel, sizes):
    key = (kernel, tuple(sizes))
    if key in SMALL_LAYERS:  # as the layer's forward product
        key = ("linear", key[1])
    return TARGETS.get(key) or TARGETS.get(kernel)


def ceilings_of(lines):
    """What the card itself does: {"copy": bytes/s, "cublas": {precision: {sizes: flop/s}}}."""
    ceilings = {"copy": None, "cublas": {}}
    for line in lines:
        if "copy" in line:
            ceilings["copy"] = line["bytes"] / line["copy"]
        elif "cublas" in line:
            rates = ceilings["cublas"].setdefault(line["cublas"], {})
            rates["x".join(map(str, line["sizes"]))] = line["flops"] / line["seconds"]
    return ceilings


def ceiling_of(line, ceilings):
    """The copy's rate for bytes; cuBLAS at these sizes, else its best, for products."""
    if line["counted"] == "bytes":
        return ceilings["copy"]
    rates = ceilings["cublas"].get("ieee", {})
    return rates.get("x".join(map(str, line["sizes"])), max(rates.values(), default=None))


def judge(row, has_targets):
    """accept and stretch as rates, and what the row reached of them."""
    target = target_of(row["kernel"], row["sizes"])
    if target is None or not has_targets or row.get("rate") is None:
        return
    unit = row["ceiling"] if target.get("of_cublas") else TERA
    if unit is None:
        return
    row["accept"], row["stretch"] = target["accept"] * unit, target["stretch"] * unit
    row["verdict"] = (
        "stretch" if row["rate"] >= row["stretch"]
        else "accept" if row["rate"] >= row["accept"]
        else "MISSED")


def kernel_rows(lines, torch_lines, has_targets):
    """A row for each kernel and size: ours, the card's ceiling, torch's."""
    ceilings = ceilings_of(lines)
    torch_of = {(t["kernel"], tuple(t["sizes"])): t for t in torch_lines if "kernel" in t}
    rows = []
    for line in lines:
        if "kernel" not in line:
            continue
        row = dict(line)
        row["ceiling"] = ceiling_of(line, ceilings)
        row["rate"] = line["work"] / line["seconds"] if line.get("seconds") else None
        if row["rate"] and row["ceiling"]:
            row["fraction"] = row["rate"] / row["ceiling"]
        twin = torch_of.get((line["kernel"], tuple(line["sizes"])), {})
        row["torch_seconds"] = twin.get("seconds")
        row["torch_left_out"] = twin.get("left_out")
        judge(row, has_targets)
        rows.append(row)
    return ceilings, rows


def taxes(rows):
    """[kernel, the other, sizes, how many times longer it takes] for each pair of TAXES."""
    seconds = {(row["kernel"], tuple(row["sizes"])): row.get("seconds") for row in rows}
    found = []
    for row in rows:
        for kernel, other in TAXES:
            free = seconds.get((other, tuple(row["sizes"])))
            if row["kernel"] == kernel and row.get("seconds") and free:
                found.append([kernel, other, row["sizes"], row["seconds"] / free])
    return found


def mebibytes(count):
    return "-" if count is None else f"{count / 2**20:.4g}"


def tera(rate):
    return "-" if rate is None else f"{rate / TERA:.3g}"


def row_text(row):
    sizes = " x ".join(map(str, row["sizes"]))
    if row.get("left_out"):
        return f"| {row['kernel']} | {sizes} | left out: {row['left_out']} | | | | | | |"
    seconds, peer = row["seconds"], row["torch_seconds"]
    unit = "TFLOP/s" if row["counted"] == "flops" else "TB/s"
    fraction = f"{100 * row['fraction']:.0f} %" if "fraction" in row else "-"
    times = f"{peer / seconds:.2f}x" if peer else f"- ({row['torch_left_out'] or 'not run'})"
    goal = f"{tera(row['accept'])} / {tera(row['stretch'])}" if "accept" in row else "-"
    return (
        f"| {row['kernel']} | {sizes} | {1e3 * seconds:.4g} ms | {tera(row['rate'])} {unit} | "
        f"{fraction} | {times} | {mebibytes(row.get('extra_bytes'))} | {goal} | "
        f"{row.get('verdict', '-')} |")


def markdown(report):
    ceilings = report["ceilings"]
    out = [f"# {report['gpu']}, {report['date']}", ""]
    if report["simulated"]:
        out += ["Simulated: the script was rehearsed. Times say nothing about any GPU.", ""]
    out += ["| machine | |", "|---|---|"]
    out += [f"| {key} | {value} |" for key, value in report["machine"].items()]
    out += ["", "| step | outcome | seconds | |", "|---|---|---|---|"]
    out += [
        f"| {step['name']} | {step['outcome']} | {step['seconds']:.0f} | {step['detail']} |"
        for step in report["steps"]
    ]
    for step in report["steps"]:
        if step.get("output"):
            out += ["", f"The end of what {step['name']} printed:", "", "```", *step["output"], "```"]
    out += ["", "| ceiling of this card | rate |", "|---|---|"]
    out += [f"| copy, read and write | {tera(ceilings['copy'])} TB/s |"]
    for precision, rates in ceilings["cublas"].items():
        out += [f"| cuBLAS {precision}, {s} | {tera(rate)} TFLOP/s |" for s, rate in rates.items()]
    out += [
        "",
        "Rates count the bytes or operations that no kernel can save; the fraction is that of the",
        "copy, or of cuBLAS in float32. torch: how many times faster ours is, in the same run.",
        "MiB: the most memory that a launch holds beside its operands and results.",
        "",
        "| kernel | sizes | time | rate | of the ceiling | torch | MiB | accept / stretch | reached |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    out += [row_text(row) for row in report["kernels"]]
    out += ["", "| what an order of sums costs | sizes | time |", "|---|---|---|"]
    out += [
        f"| {kernel}, not {other} | {' x '.join(map(str, sizes))} | {ratio:.3f}x |"
        for kernel, other, sizes, ratio in taxes(report["kernels"])
    ]
    return "\n".join(out) + "\n"


def write(report, folder):
    """Writes <date>-<gpu>.json and .md; returns the path of the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    gpu = "-".join("".join(c if c.isalnum() else " " for c in report["gpu"].lower()).split())
    stem = f"{report['date']}-{gpu}"
    (folder / f"{stem}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    path = folder / f"{stem}.md"
    path.write_text(markdown(report), encoding="utf-8")
    return path


def today():
    return datetime.date.today().isoformat()
