"""The part of a study's README.md that is made from its results: verdict, claims, tables. And the index of all studies."""

from pathlib import Path

from lab.errors import LabError
from lab.figures import bytes_text
from lab.measure import NEVER, parse_measure
from lab.outcome import Outcome, Row, average, deviation, read_outcome
from lab.study import Column, Part, Study, Theirs
from lab.verdict import HOLDS, OPEN, Judgement, judge, rank_correlations, rows_of, verdict

BEGIN = "<!-- results: made by experiments/paper.py, not by hand -->"
END = "<!-- end of results -->"
_MARKS = {HOLDS: "holds", OPEN: "**open**"}


def replace_results(path: Path, text: str) -> None:
    """Puts `text` between the markers of a README."""
    whole = path.read_text(encoding="utf-8") if path.exists() else f"{BEGIN}\n{END}\n"
    if whole.count(BEGIN) != 1 or whole.count(END) != 1 or whole.index(END) < whole.index(BEGIN):
        raise LabError(
            f"{path}: the lines '{BEGIN}' and '{END}' stand in it once each, in this order"
        )
    head, _, rest = whole.partition(BEGIN)
    path.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def results_between_markers(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip("\n")


def chapter(study: Study, outcome: Outcome, figure: str = "figure.svg") -> str:
    """Markdown."""
    judgements = judge(study, outcome)
    parts = [
        f"**The ordering {verdict(judgements)}.**",
        claims_table(study, outcome, judgements),
        f"![{study.title}]({figure})",
    ]
    for part in study.parts:
        if len(study.parts) > 1:
            parts.append(f"**{part.name.capitalize()}**")
        parts += [table(study, part, outcome), notes(study, part, outcome)]
    parts += (
        [f"Theirs: {', '.join(dict.fromkeys(theirs.source for theirs in study.theirs))}."]
        if study.theirs
        else []
    )
    return "\n\n".join(text for text in parts if text)


def claims_table(study: Study, outcome: Outcome, judgements: list[Judgement]) -> str:
    lines = ["| the paper's claim | in our runs | ours |", "|---|---|---|"]
    for judgement in judgements:
        mark = _MARKS.get(judgement.outcome, "**does not hold**")
        against = f": {'; '.join(judgement.because)}" if judgement.because else ""
        where = f" ({judgement.where})" if judgement.where else ""
        lines.append(
            f"| {judgement.claim.text}{where} | {evidence(study, outcome, judgement)} | {mark}{against} |"
        )
    return "\n".join(lines)


def evidence(study: Study, outcome: Outcome, judgement: Judgement) -> str:
    """The means that the claim is about, in the claim's order."""
    claim, column = judgement.claim, study.column(judgement.claim.column)
    rows = rows_of(claim, outcome.of(study.part(column.part).name))[judgement.where]
    if claim.rank:
        ours, other = rank_correlations(claim, column, rows)
        return f"{column.name}: rank correlation {_range(ours)} with {claim.rank[0]}, {_range(other)} with {claim.rank[1]}"
    told = ", ".join(
        f"{name} {figure_text(column, average(rows[name].values[column.name]))}"
        for name in claim.names()
        if name in rows
    )
    return f"{column.name}: {told}"


def _range(values: list[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def table(study: Study, part: Part, outcome: Outcome) -> str:
    """A line for each series and facet: step size, then mean ± standard deviation over the seeds of each column."""
    rows, columns = outcome.of(part.name), study.columns_of(part)
    faceted = any(row.facet for row in rows)
    head = ["", *(["where"] if faceted else []), *(["step size"] if part.rates else [])]
    beside = {
        column.name: [theirs for theirs in study.theirs if theirs.beside == column.name]
        for column in columns
    }
    for column in columns:
        head += [column.name, *(theirs.name for theirs in beside[column.name])]
    lines = [
        f"| {' | '.join(head)} |",
        f"|---|{'---|' * faceted}{'---:|' * (len(head) - 1 - faceted)}",
    ]
    for row in rows:
        cells = [
            row.series,
            *([row.facet] if faceted else []),
            *([_rate(row)] if part.rates else []),
        ]
        for column in columns:
            cells += [
                spread_text(column, row.values[column.name]),
                *(_their_figure(t, row) for t in beside[column.name]),
            ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def notes(study: Study, part: Part, outcome: Outcome) -> str:
    rows = outcome.of(part.name)
    seeds = sorted({len(values) for row in rows for values in row.values.values()})
    said = [
        f"{seeds[0] if len(seeds) == 1 else f'{seeds[0]} to {seeds[-1]}'} seeds; mean ± standard deviation."
        if seeds != [1]
        else "One seed."
    ]
    if part.rates:
        said.append(
            f"Step size: the one of {outcome.rates[part.name]} with the {parse_measure(part.select).words}."
        )
    if any(row.at_edge for row in rows):
        said.append("(edge): it is the smallest or largest tried, and a better one may lie beyond.")
    if any(NEVER in values for row in rows for values in row.values.values()):
        said.append("never: some seed does not get there within the run.")
    said += [
        f"{column.name[0].upper()}{column.name[1:]}: {column.note}."
        for column in study.columns_of(part)
        if column.note
    ]
    return " ".join(said)


def figure_text(column: Column, value: float) -> str:
    if value == NEVER:
        return "never"
    if column.percent:
        return f"{100 * value:.1f} %"
    if column.unit == "B":
        return bytes_text(value)
    unit = f" {column.unit}" if column.unit else ""
    return f"{value:.0f}{unit}" if abs(value) >= 100 else f"{value:.3g}{unit}"


def spread_text(column: Column, values: list[float]) -> str:
    middle, spread = average(values), deviation(values)
    if middle == NEVER:
        reached = sum(value != NEVER for value in values)
        return f"never ({reached} of {len(values)} seeds do)" if reached else "never"
    if spread is None or spread <= 1e-9 * abs(middle):
        return figure_text(column, middle)
    if column.percent:
        return f"{100 * middle:.1f} ± {100 * spread:.1f} %"
    if column.unit == "B":
        return f"{bytes_text(middle)} ± {100 * spread / middle:.0f} %"
    return f"{figure_text(column, middle)} ± {spread:.2g}"


def _rate(row: Row) -> str:
    return f"{row.rate}{' (edge)' if row.at_edge else ''}" if row.rate else "–"


def _their_figure(theirs: Theirs, row: Row) -> str:
    value = theirs.values.get(row.series, "–")
    return str(value.get(row.facet, "–") if isinstance(value, dict) else value)


def index(studies: list[Study]) -> str:
    """The table of experiments/papers/README.md."""
    lines = ["| run | paper | claim | ordering in our runs |", "|---|---|---|---|"]
    for study in studies:
        told = verdict(judge(study, read_outcome(study.folder / "results.json")))
        lines.append(
            f"| [{study.name}]({study.name}/README.md) | {study.source} | {study.claim} | {told} |"
        )
    return "\n".join(lines)
