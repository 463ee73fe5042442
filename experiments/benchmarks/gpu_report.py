"""The table of a run of gpu.sh: records, one JSON object a line, to Markdown and JSON.

    python3 gpu_report.py lines.jsonl [--markdown FILE] [--json FILE]

Records: `pairs` (ours and theirs, pair by pair), `rates` (ours alone), `value` (one figure), `check` (passed or not, in
words), `failed` (why there is no figure), and `discovery`, `device`, `torch`, `started` about the machine. Of several records
of one row the last that is no failure counts. Every row stands in the table, and one without a figure says why: nothing is
filled in.
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
    """A row of the table. `target`: what the ratio (or, `at_most`, the value) must reach."""

    id: str
    what: str
    against: str
    target: float | None = None
    at_most: bool = False
    scale: float = 1e9  # of the figures, for people
    unit: str = "GB/s"


COPY = "bytes over copy bandwidth"
EXPLANATION = """Ratios are medians of interleaved pairs of this run. For bytes over copy bandwidth, "ours" is the bytes that
the operation must move over its time, "theirs" the same of a copy on the GPU."""
STEPS = {"scale": 1.0, "unit": "steps/s"}

FIGURES = (
    Row("copy", "copy of 100M floats on the GPU (bytes read and written)", "–"),
    Row("mix", "`mix` of 3 rows of 100M floats", COPY, 0.9),
    Row("update", "fused SGD + momentum, 100M floats", COPY, 0.9),
    Row("adam", "fused Adam, 100M floats", COPY),
    Row(
        "ring",
        "mixing round: 16 peers, ring, rows of 25M floats",
        f"{COPY}, each row read once and written once",
        0.8,
    ),
    Row("ring_issued", "the same", f"{COPY}, three rows read and one written by each peer"),
    Row(
        "mlp64_loop",
        "64 peers × MLP 784-128-10, batch 32",
        "PyTorch, one after the other, CUDA graph",
        10,
        **STEPS,
    ),
    Row(
        "mlp64_batched",
        "64 peers × MLP 784-128-10, batch 32",
        "PyTorch, the better of bmm and vmap, CUDA graph",
        1.3,
        **STEPS,
    ),
    Row("mlp1", "one peer, MLP 784-1024-1024-10, batch 512", "PyTorch, CUDA graph", 1.2, **STEPS),
    Row("cnn1", "one peer, CNN 28×28, batch 256", "PyTorch, CUDA graph", 1.2, **STEPS),
    Row(
        "mlp64_single",
        "64 peers × MLP, one step a call",
        "PyTorch, the better of bmm and vmap",
        **STEPS,
    ),
    Row("mlp1_single", "one peer, MLP, one step a call", "PyTorch, CUDA graph", **STEPS),
    Row("cnn1_single", "one peer, CNN, one step a call", "PyTorch, CUDA graph", **STEPS),
    Row(
        "overlap",
        "adapt-while-communicate, two processes on loopback",
        "the same without communication",
        0.952,
        scale=1,
        unit="rounds/s",
    ),
    Row(
        "sweep",
        "256 peers × 9 topologies × 3 seeds, MNIST's size, 10 epochs",
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
            "integers",
            "uniforms",
            "dot",
            "squared_norm",
            "squared_distance",
            "judge",
            "sketch",
            "to_bf16",
            "from_bf16",
            "to_int8",
            "from_int8",
            "to_signs",
            "from_signs",
        )
    ),
    *(
        Row(name, f"`{name}`: {what}", COPY)
        for name, what in (
            ("largest", "the 10M largest of 100M floats, with their indices"),
            ("add_placed", "10M values added at indices of 100M floats"),
            ("sample", "10M random ones of 100M floats"),
            ("add_sampled", "10M values added at random places of 100M floats"),
        )
    ),
    Row("torch_copy", "PyTorch's copy of 100M floats", "–"),
    Row("torch_product", "PyTorch's fp32 product, 8192³", "–", scale=1e12, unit="TFLOP/s"),
)
CHECKS = (
    Row("build", "build with nvcc", ""),
    Row("parity", "every operation against the CPU in double, on the GPU", ""),
    Row("memcheck", "compute-sanitizer memcheck", ""),
    Row("racecheck", "compute-sanitizer racecheck", ""),
    Row("doctor", "`gossamer doctor`", ""),
    Row("agreement", "50 rounds on CPU and GPU, losses within 1e-3", ""),
    Row("determinism", "two runs on the GPU, the same `final_hash`", ""),
)


def said(text: object) -> str:
    """Words that do not break a table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def chosen(records: list[Record], row: Row) -> Record:
    """The record that counts for a row."""
    mine = [record for record in records if record.get("id") == row.id]
    good = [record for record in mine if record["record"] != "failed"]
    if good or mine:
        return (good or mine)[-1]
    return {
        "record": "failed",
        "id": row.id,
        "reason": "did not run: the suite ended before its turn",
    }


def outcome(reached: bool, record: Record, quick: bool) -> str:
    if quick:
        return "not judged"
    if record.get("condition") is False:
        return "not judged: the condition is not met"
    return "reached" if reached else "**not reached**"


def judge(row: Row, record: Record, quick: bool) -> Record:
    """The row with its cells: what a reader of the JSON wants, and what the Markdown is made of."""
    try:
        return cells(row, record, quick)
    except (
        KeyError,
        TypeError,
        ValueError,
        ZeroDivisionError,
    ) as error:  # null for a figure that is none, say
        return cells(
            row,
            {
                "record": "failed",
                "reason": f"a record without sense ({type(error).__name__}: {error})",
            },
            quick,
        )


def cells(row: Row, record: Record, quick: bool) -> Record:
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
            outcome(pairs.ratio >= row.target, record, quick) if row.target is not None else "–"
        )
    elif kind in ("rates", "value") and (
        figures := record["ours"] if kind == "rates" else [record["value"]]
    ):
        result.update(ours=statistics.median(figures), all_ours=figures)
        if record.get("missing"):
            result["outcome"] = f"no figure: {said(record['missing'])}"
        elif row.at_most and row.target is not None:
            result["outcome"] = outcome(result["ours"] <= row.target, record, quick)
        elif row.target is not None:
            result["outcome"] = "no figure: nothing to compare with"
        else:
            result["outcome"] = "–"
    else:
        result["outcome"] = f"no figure: {said(record.get('reason', 'the record has no figures'))}"
    return result


def figure_line(row: Row, result: Record) -> str:
    ours, theirs = (
        "–" if result[key] is None else f"{figure(result[key] / row.scale)} {row.unit}"
        for key in ("ours", "theirs")
    )
    ratio = result["ratio"]
    cell = (
        "–" if ratio is None else f"{ratio['median']:.3g} ({ratio['low']:.3g}–{ratio['high']:.3g})"
    )
    target = (
        "–"
        if row.target is None
        else f"at most {row.target:g} {row.unit}"
        if row.at_most
        else f"{row.target:g}"
    )
    note = f"; {said(result['note'])}" if result["note"] else ""
    return f"| {row.what} | {row.against} | {ours} | {theirs} | {cell} | {target} | {result['outcome']}{note} |"


def check(row: Row, record: Record) -> Record:
    if record["record"] == "check":
        ok = record.get("ok", False)
        state = "ok" if ok is True else "not whole" if ok is None else "**FAILED**"
        return {"id": row.id, "what": row.what, "outcome": state, "note": record.get("words", "")}
    return {
        "id": row.id,
        "what": row.what,
        "outcome": "did not run",
        "note": record.get("reason", ""),
    }


def machine(records: list[Record]) -> Record:
    """What all was measured on, as far as it is known."""
    about: Record = {}
    for record in records:
        if record["record"] in ("discovery", "device", "torch", "started"):
            about[record["record"]] = {
                key: value for key, value in record.items() if key != "record"
            }
    return about


def machine_lines(about: Record, quick: bool) -> list[str]:
    discovery, lines = about.get("discovery", {}), []
    if "started" in about:
        lines.append(
            f"{about['started'].get('time', '')}; {about['started'].get('commit', 'commit unknown')}."
        )
    if discovery.get("problem"):
        lines.append(f"**No GPU: {said(discovery['problem'])}.**")
    elif discovery:
        lines.append(
            f"GPU: {said(discovery.get('gpu', 'unknown'))}, {discovery.get('multiprocessors', 0):.0f} multiprocessors, "
            f"{discovery.get('memory_total', 0) / 2**30:.1f} GiB; driver {discovery.get('driver', 0):.0f}, runtime "
            f"{discovery.get('runtime', 0):.0f}, {said(discovery.get('blas', ''))}."
        )
    else:
        lines.append("**No GPU was asked: the program that would do it was not built.**")
    if torch := about.get("torch"):
        lines.append(
            f"PyTorch {said(torch.get('torch'))} on {said(torch.get('description'))}, "
            f"allow_tf32 = {torch.get('allow_tf32')}."
        )
    if quick:
        lines.append(
            "**Small sizes or no real GPU: this shows that the parts run. No number below is a figure.**"
        )
    return lines


def report(records: list[Record]) -> tuple[str, Record]:
    """Markdown, and the same as data."""
    about = machine(records)
    quick = any(
        about.get(key, {}).get("quick") for key in ("device", "started")
    ) or "mulated" in about.get("discovery", {}).get("gpu", "")
    results = [(row, judge(row, chosen(records, row), quick)) for row in FIGURES]
    checks = [check(row, chosen(records, row)) for row in CHECKS]
    lines = [
        "# Gossamer on a GPU",
        "",
        *machine_lines(about, quick),
        "",
        "## Figures",
        "",
        "| what | against | ours | theirs | ratio (95 % interval) | at least | outcome |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [figure_line(row, result) for row, result in results]
    lines += ["", EXPLANATION, "", "## Checks", "", "| what | outcome | |", "|---|---|---|"]
    lines += [
        f"| {result['what']} | {result['outcome']} | {said(result['note'])} |" for result in checks
    ]
    return "\n".join(lines) + "\n", {
        "machine": about,
        "figures": [result for _, result in results],
        "checks": checks,
    }


def read(path: Path) -> list[Record]:
    """The records of a file whose last line may be cut off."""
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
    parser.add_argument("--markdown", type=Path, help="write the table here; else it is printed")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    text, result = report(read(given.lines))
    if given.markdown is None:
        print(text, end="")
    else:
        given.markdown.write_text(text, encoding="utf-8")
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
