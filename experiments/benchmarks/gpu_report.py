"""Writes the table of a run of gpu.sh as Markdown and JSON from its records in JSON lines.

    python3 gpu_report.py lines.jsonl [--markdown FILE] [--json FILE]

Records of measurements and checks: `pairs` (ours and theirs, pair by pair), `rates` (ours only),
`value` (one number), `check` (passed or not, with details) and `failed` (the reason for a missing
value). Records about the machine: `discovery`, `device`, `torch` and `started`. If a row has
several records, the last one that is not a failure counts. The table has every row; a row without a
value has the reason.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairs import Pairs

Record = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A row of the table.

    `target` is the least ratio or, with `at_most`, the largest value.
    """

    id: str
    what: str
    against: str
    target: float | None = None
    at_most: bool = False
    scale: float = 1e9  # the unit of displayed values
    unit: str = "GB/s"


COPY = "bytes over copy bandwidth"
EXPLANATION = """Ratios are medians of interleaved pairs of this run. For "bytes over copy
bandwidth", "ours" is the number of bytes that the operation must move, divided by its time; the
baseline is the same quotient of a copy on the GPU."""
STEPS = {"scale": 1.0, "unit": "steps/s"}

MEASUREMENTS = (
    Row("copy", "copy of 100M floats on the GPU (bytes read and written)", "–"),
    Row("mix", "`mix` of 3 rows of 100M floats", COPY, 0.9),
    Row("update", "fused SGD + momentum, 100M floats", COPY, 0.9),
    Row("adam", "fused Adam, 100M floats", COPY),
    Row(
        "ring",
        "mixing round: 16 peers, ring, rows of 25M floats",
        f"{COPY}, each row read and written once",
        0.8,
    ),
    Row(
        "ring_issued",
        "mixing round, as above",
        f"{COPY}, a peer reads 3 rows and writes 1",
    ),
    Row(
        "mlp64_loop",
        "64 peers × MLP 784-128-10, batch 32",
        "PyTorch, one model after the other, CUDA graph",
        10,
        **STEPS,
    ),
    Row(
        "mlp64_batched",
        "64 peers × MLP 784-128-10, batch 32",
        "PyTorch, faster of bmm and vmap, CUDA graph",
        1.3,
        **STEPS,
    ),
    Row("mlp1", "one peer, MLP 784-1024-1024-10, batch 512", "PyTorch, CUDA graph", 1.2, **STEPS),
    Row("cnn1", "one peer, CNN 28×28, batch 256", "PyTorch, CUDA graph", 1.2, **STEPS),
    Row(
        "mlp64_single",
        "64 peers × MLP, one step a call",
        "PyTorch, faster of bmm and vmap",
        **STEPS,
    ),
    Row("mlp1_single", "one peer, MLP, one step a call", "PyTorch, CUDA graph", **STEPS),
    Row("cnn1_single", "one peer, CNN, one step a call", "PyTorch, CUDA graph", **STEPS),
    Row(
        "overlap",
        "adapt-while-communicate, two processes on loopback",
        "without communication",
        0.952,
        scale=1,
        unit="rounds/s",
    ),
    Row(
        "sweep",
        "256 peers × 9 topologies × 3 seeds, size of MNIST, 10 epochs",
        "–",
        300,
        at_most=True,
        scale=1,
        unit="s",
    ),
    *(
        Row(name, f"`{name}` of 100M floats", COPY)
        for name in (
            "copy_row",
            "axpy",
            "add_difference",
            "scale",
            "divide",
            "fill",
            "check_range",
            "sketch",
            "encode_bf16",
            "decode_bf16",
            "encode_int8",
            "decode_int8",
            "encode_signs",
            "decode_signs",
        )
    ),
    *(
        Row(name, f"`{name}`: {what}", COPY)
        for name, what in (
            ("top_k", "the 10M largest of 100M floats, with their indices"),
            ("scatter_add", "10M values added at indices of 100M floats"),
            ("sample", "10M random ones of 100M floats"),
            ("add_sampled", "10M values added at random indices of 100M floats"),
        )
    ),
    Row("torch_copy", "PyTorch's copy of 100M floats", "–"),
    Row("torch_product", "PyTorch's fp32 product, 8192³", "–", scale=1e12, unit="TFLOP/s"),
)
CHECKS = (
    Row("build", "build with nvcc", ""),
    Row("parity", "every operation on the GPU against the CPU in double", ""),
    Row("memcheck", "compute-sanitizer memcheck", ""),
    Row("racecheck", "compute-sanitizer racecheck", ""),
    Row("initcheck", "compute-sanitizer initcheck", ""),
    Row("synccheck", "compute-sanitizer synccheck", ""),
    Row("doctor", "`gossamer doctor`", ""),
    Row("agreement", "50 rounds on CPU and GPU, losses within 1e-3", ""),
    Row("determinism", "two runs on the GPU, equal `final_hash`", ""),
)


def escape_cell(text: object) -> str:
    """Text for a cell of a Markdown table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def format_number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def record_for(records: list[Record], row: Row) -> Record:
    """The last record of a row that is not a failure; else its last failure."""
    of_row = [record for record in records if record.get("id") == row.id]
    successful = [record for record in of_row if record["record"] != "failed"]
    if of_row:
        return (successful or of_row)[-1]
    return {
        "record": "failed",
        "id": row.id,
        "reason": "did not run: the suite ended before",
    }


def target_outcome(reached: bool, record: Record, quick: bool) -> str:
    if quick:
        return "not evaluated"
    if record.get("condition") is False:
        return "not evaluated: the condition is not met"
    return "reached" if reached else "**not reached**"


def measurement_result(row: Row, record: Record, quick: bool) -> Record:
    """The row and its values, for JSON and Markdown."""
    try:
        return evaluate(row, record, quick)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:  # null as a value, say
        reason = f"invalid record ({type(error).__name__}: {error})"
        return evaluate(row, {"record": "failed", "reason": reason}, quick)


def evaluate(row: Row, record: Record, quick: bool) -> Record:
    result: Record = {
        "id": row.id,
        "what": row.what,
        "against": row.against,
        "target": row.target,
        "unit": row.unit,
        "ours": None,
        "theirs": None,
        "ratio": None,
        "note": record.get("note", ""),
    }
    kind = record["record"]
    if kind == "pairs" and record["ours"] and len(record["ours"]) == len(record["theirs"]):
        pairs = Pairs(row.id, row.target, record["ours"], record["theirs"])
        low, high = pairs.interval()
        result.update(
            ours=statistics.median(pairs.ours),
            theirs=statistics.median(pairs.theirs),
            pairs=len(pairs.ours),
            ratio={"median": pairs.ratio, "low": low, "high": high},
            all_ours=pairs.ours,
            all_theirs=pairs.theirs,
        )
        result["outcome"] = (
            target_outcome(pairs.ratio >= row.target, record, quick)
            if row.target is not None
            else "–"
        )
    elif kind in ("rates", "value") and (
        values := record["ours"] if kind == "rates" else [record["value"]]
    ):
        result.update(ours=statistics.median(values), all_ours=values)
        if record.get("missing"):
            result["outcome"] = f"no value: {escape_cell(record['missing'])}"
        elif row.at_most and row.target is not None:
            result["outcome"] = target_outcome(result["ours"] <= row.target, record, quick)
        elif row.target is not None:
            result["outcome"] = "no value: the baseline is missing"
        else:
            result["outcome"] = "–"
    else:
        reason = record.get("reason", "the record has no values")
        result["outcome"] = f"no value: {escape_cell(reason)}"
    return result


def measurement_line(row: Row, result: Record) -> str:
    ours, theirs = (
        "–" if result[key] is None else f"{format_number(result[key] / row.scale)} {row.unit}"
        for key in ("ours", "theirs")
    )
    ratio = result["ratio"]
    ratio_text = (
        "–" if ratio is None else f"{ratio['median']:.3g} ({ratio['low']:.3g}–{ratio['high']:.3g})"
    )
    target = (
        "–"
        if row.target is None
        else f"at most {row.target:g} {row.unit}"
        if row.at_most
        else f"{row.target:g}"
    )
    note = f"; {escape_cell(result['note'])}" if result["note"] else ""
    cells = (row.what, row.against, ours, theirs, ratio_text, target, result["outcome"] + note)
    return f"| {' | '.join(cells)} |"


def check_result(row: Row, record: Record) -> Record:
    if record["record"] == "check":
        ok = record.get("ok", False)
        outcome = "ok" if ok is True else "incomplete" if ok is None else "**FAILED**"
        note = record.get("detail", "")
    else:
        outcome, note = "did not run", record.get("reason", "")
    return {"id": row.id, "what": row.what, "outcome": outcome, "note": note}


def machine(records: list[Record]) -> Record:
    """The records about the machine, by kind."""
    about: Record = {}
    for record in records:
        if record["record"] in ("discovery", "device", "torch", "started"):
            about[record["record"]] = {
                key: value for key, value in record.items() if key != "record"
            }
    return about


def machine_lines(about: Record, quick: bool) -> list[str]:
    discovery, lines = about.get("discovery", {}), []
    if started := about.get("started"):
        lines.append(f"{started.get('time', '')}; {started.get('commit', 'commit unknown')}.")
    if discovery.get("problem"):
        lines.append(f"**No GPU: {escape_cell(discovery['problem'])}.**")
    elif discovery:
        lines.append(
            f"GPU: {escape_cell(discovery.get('gpu', 'unknown'))}, "
            f"{discovery.get('multiprocessors', 0):.0f} multiprocessors, "
            f"{discovery.get('memory_total', 0) / 2**30:.1f} GiB; "
            f"driver {discovery.get('driver', 0):.0f}, runtime {discovery.get('runtime', 0):.0f}, "
            f"{escape_cell(discovery.get('blas', ''))}."
        )
    else:
        lines.append("**The GPU is unknown, because bench_gpu was not built.**")
    if torch := about.get("torch"):
        lines.append(
            f"PyTorch {escape_cell(torch.get('torch'))} on "
            f"{escape_cell(torch.get('description'))}, allow_tf32 = {torch.get('allow_tf32')}."
        )
    if quick:
        lines.append(
            "**Small sizes or an emulated GPU: this run only shows that all stages work. "
            "No number below is a measurement.**"
        )
    return lines


def report(records: list[Record]) -> tuple[str, Record]:
    """The table as Markdown and as data."""
    about = machine(records)
    quick = any(
        about.get(key, {}).get("quick") for key in ("device", "started")
    ) or "mulated" in about.get("discovery", {}).get("gpu", "")
    results = [
        (row, measurement_result(row, record_for(records, row), quick)) for row in MEASUREMENTS
    ]
    checks = [check_result(row, record_for(records, row)) for row in CHECKS]
    lines = [
        "# Gossamer on a GPU",
        "",
        *machine_lines(about, quick),
        "",
        "## Measurements",
        "",
        "| what | baseline | ours | baseline's | ratio (95 % interval) | target | outcome |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [measurement_line(row, result) for row, result in results]
    lines += ["", EXPLANATION, "", "## Checks", "", "| what | outcome | |", "|---|---|---|"]
    lines += [
        f"| {result['what']} | {result['outcome']} | {escape_cell(result['note'])} |"
        for result in checks
    ]
    return "\n".join(lines) + "\n", {
        "machine": about,
        "measurements": [result for _, result in results],
        "checks": checks,
    }


def read(path: Path) -> list[Record]:
    """The records of a file. Its last line may be incomplete."""
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and isinstance(record.get("record"), str):
            records.append(record)
    return records


def write(records: list[Record], markdown: Path, data: Path) -> None:
    text, result = report(records)
    markdown.write_text(text, encoding="utf-8")
    data.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lines", type=Path)
    parser.add_argument("--markdown", type=Path, help="file of the table (default: print it)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    text, result = report(read(options.lines))
    if options.markdown is None:
        print(text, end="")
    else:
        options.markdown.write_text(text, encoding="utf-8")
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
