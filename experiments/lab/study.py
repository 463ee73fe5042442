"""A published result to be run again, as its study.toml tells it: sweeps, what is measured, what the paper claims of the
order of things, what it found, and what is drawn. experiments/papers/README.md explains the form.
"""

import itertools
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from lab.axes import Axis, parse_axes, parse_axis, read_variants
from lab.cells import SEED
from lab.conditions import word_of
from lab.errors import LabError

T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """One sweep: a grid over the study's variants."""

    name: str
    config: str  # TOML file of the study's folder, the run that the grid varies
    axes: tuple[str, ...]  # as sweep.py takes them
    rates: str = ""  # step sizes to select from
    select: str = "test_loss"  # by which measure
    variants: tuple[str, ...] = ()  # which of the study's; empty: all
    full: bool = True  # whether it is part of the full-size study


@dataclass(frozen=True)
class Column:
    """One figure per run. `measure` as lab/measure.py reads it, or `topology KEY [DECAY]`: of the mixing matrix."""

    name: str
    measure: str
    part: str = ""  # of which part; empty: the first
    percent: bool = False
    unit: str = ""  # "B": written as kB, MB, …
    note: str = ""  # said below the table


@dataclass(frozen=True)
class Claim:
    """What the paper says of the order of things, held against the runs by lab/verdict.py. One of `order`, `close`, `rank`."""

    text: str
    column: str
    where: str = ""  # the facet it is about, as the table says it; empty: every facet
    order: tuple[
        Any, ...
    ] = ()  # series, or lists of them, the better before the worse; `ring @ n = 8`
    # names a series in one facet
    factor: float = 1  # `order`: how many times better at least
    close: tuple[str, ...] = ()  # series that differ by no more than …
    within: float = 0  # … this, in the column's unit, …
    times: float = 0  # … or this factor
    rank: tuple[
        str, ...
    ] = ()  # two columns: the first ranks the series as `column` does, the second less well
    smaller: tuple[str, ...] = ()  # columns of `rank` of which less is better

    def names(self) -> list[str]:
        """Every series that `order` or `close` is about."""
        return [
            name
            for group in (*self.order, *self.close)
            for name in (group if isinstance(group, list) else [group])
        ]


@dataclass(frozen=True)
class Theirs:
    """Figures of the paper, beside ours in the table."""

    name: str  # heading
    source: str  # table or figure of which paper
    beside: str  # the column it stands next to
    values: dict[str, Any] = field(
        default_factory=dict
    )  # series → figure, or series → facet → figure


@dataclass(frozen=True)
class Panel:
    """One panel of the figure: a curve against round, bytes_sent or seconds; or columns as dots, lines or a scatter."""

    title: str
    kind: str  # curve | dots | lines | scatter
    y: str  # a curve's name, or a column's
    x: str = "round"  # curve: round | bytes_sent | seconds; lines: an axis; scatter: a column
    part: str = ""
    where: str = ""  # facet; empty: the first
    variants: tuple[str, ...] = ()  # empty: all
    log: str = ""  # axes that are logarithmic: "x", "y", "xy"
    xlabel: str = ""
    ylabel: str = ""
    ylim: tuple[float, ...] = ()
    xlim: tuple[float, ...] = ()
    target: float | None = None  # a line across


@dataclass(frozen=True)
class Study:
    folder: Path
    title: str
    claim: str  # of the paper, in one sentence of ours
    source: str
    parts: tuple[Part, ...]
    columns: tuple[Column, ...]
    claims: tuple[Claim, ...]
    theirs: tuple[Theirs, ...]
    panels: tuple[Panel, ...]
    variants: tuple[str, ...]
    target: str = ""  # stands for {target} in measures
    full: dict[str, Any] = field(
        default_factory=dict
    )  # of the full size: config, axes, rates, target, variants (a file)
    variants_file: str = "study.toml"

    @property
    def name(self) -> str:
        return self.folder.name

    def part(self, name: str) -> Part:
        """By name; the first one where no name is given."""
        return next((part for part in self.parts if name in ("", part.name)), self.parts[0])

    def columns_of(self, part: Part) -> list[Column]:
        return [column for column in self.columns if self.part(column.part) is part]

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def read_study(folder: Path) -> Study:
    """Reads and checks `folder`/study.toml. Throws LabError naming the file and what is wrong."""
    path = folder / "study.toml"
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(
            f"{path}: {error.strerror}: studies are the folders of {folder.parent}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: not valid TOML: {error}") from error
    try:
        variants = tuple(read_variants(path))
        told.pop("variants")
        lists = {
            "parts": _all(Part, told.pop("part", [])),
            "columns": _all(Column, told.pop("column", [])),
            "claims": _all(Claim, told.pop("claim", [])),
            "theirs": _all(Theirs, told.pop("theirs", [])),
            "panels": _all(Panel, told.pop("panel", [])),
        }
        study = _make(
            Study,
            {
                **told.pop("study", {}),
                "full": told.pop("full", {}),
                "folder": folder,
                "variants": variants,
                **lists,
            },
        )
        if told:
            raise LabError(f"[{next(iter(told))}] is no table of a study")
        _check(study)
    except LabError as error:
        raise LabError(f"{path}: {error}") from error
    return replace(
        study,
        columns=tuple(
            replace(c, measure=c.measure.replace("{target}", study.target)) for c in study.columns
        ),
        parts=tuple(
            replace(p, select=p.select.replace("{target}", study.target)) for p in study.parts
        ),
    )


def full_size(study: Study) -> Study:
    """The study as its [full] table changes it: other data, another model, other step sizes and targets."""
    if not study.full:
        raise LabError(f"{study.name} has no [full] table")
    extra = [parse_axis(text) for text in study.full.get("axes", ())]
    target = str(study.full.get("target", study.target))

    def enlarged(text: str) -> str:
        return text.replace(study.target, target) if study.target else text

    parts = tuple(
        replace(
            part,
            config=study.full.get("config", part.config),
            axes=merge_axes(part.axes, extra),
            select=enlarged(part.select),
            rates=study.full.get("rates", part.rates) if part.rates else "",
        )
        for part in study.parts
        if part.full
    )
    kept = {part.name: ["", *facets(part)] for part in parts}
    columns = tuple(
        replace(c, measure=enlarged(c.measure))
        for c in study.columns
        if study.part(c.part).name in kept
    )
    names = {column.name for column in columns}
    return replace(
        study,
        parts=parts,
        columns=columns,
        target=target,
        theirs=(),
        variants_file=study.full.get("variants", study.variants_file),
        claims=tuple(
            c
            for c in study.claims
            if c.column in names and c.where in kept[study.part(study.column(c.column).part).name]
        ),
        panels=tuple(
            replace(p, where=p.where if p.where in kept[part] else "")
            for p in study.panels
            if (part := panel_part(study, p).name) in kept
        ),
    )


def facets(part: Part) -> list[str]:
    """Every facet of a part's grid, as its tables say it: `alpha = 0.1, peers = 25`."""
    varied = _varied(part)
    return [
        facet_at(part, dict(zip((axis.key for axis in varied), values, strict=True)))
        for values in itertools.product(*(axis.values for axis in varied))
    ]


def facet_at(part: Part, labels: dict[str, str]) -> str:
    """The facet of a place in the grid: its values on the axes that vary, without variant and seed."""
    return ", ".join(f"{word_of(axis.key)} = {labels[axis.key]}" for axis in _varied(part))


def _varied(part: Part) -> list[Axis]:
    return [
        axis for axis in parse_axes(list(part.axes)) if axis.key != SEED and len(axis.values) > 1
    ]


def panel_part(study: Study, panel: Panel) -> Part:
    return study.part(panel.part if panel.kind == "curve" else study.column(panel.y).part)


def merge_axes(axes: tuple[str, ...], extra: list[Axis]) -> tuple[str, ...]:
    """The axes with those of the same key replaced by the extra ones, and the other extra ones behind."""
    replaced = {axis.key for axis in extra}
    return (
        *(text for text in axes if parse_axis(text).key not in replaced),
        *(f"{axis.key}={','.join(axis.values)}" for axis in extra),
    )


def _all(kind: type[T], tables: Any) -> tuple[T, ...]:
    return tuple(_make(kind, table) for table in tables)


def _make(kind: type[T], table: dict[str, Any]) -> T:
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    for key in table:
        if key not in known:
            raise LabError(
                f"{kind.__name__.lower()}: '{key}' is not one of {', '.join(sorted(known))}"
            )
    values = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
    }
    try:
        return kind(**values)
    except TypeError as error:
        raise LabError(f"{kind.__name__.lower()}: {error}") from error


def _check(study: Study) -> None:
    """Every name that is used is there."""
    parts, columns = {part.name for part in study.parts}, {column.name for column in study.columns}
    if not parts or not columns or not study.claims:
        raise LabError("a study has at least one part, one column and one claim")
    for name in [c.part for c in study.columns] + [p.part for p in study.panels]:
        if name and name not in parts:
            raise LabError(f"there is no part '{name}'")
    for panel in study.panels:
        if panel.kind not in ("curve", "dots", "lines", "scatter"):
            raise LabError(f"panel '{panel.title}': kind is curve, dots, lines or scatter")
    for name in (
        [p.y for p in study.panels if p.kind != "curve"]
        + [p.x for p in study.panels if p.kind == "scatter"]
        + [c.column for c in study.claims]
        + [t.beside for t in study.theirs]
        + [name for c in study.claims for name in (*c.rank, *c.smaller)]
    ):
        if name not in columns:
            raise LabError(f"there is no column '{name}'")
    series = {name.partition(" @ ")[0] for claim in study.claims for name in claim.names()}
    series |= {name for part in study.parts for name in part.variants} | {
        name for p in study.panels for name in p.variants
    }
    for name in sorted(series | {name for t in study.theirs for name in t.values}):
        if name not in study.variants:
            raise LabError(f"there is no variant '{name}'")
    for place, where in [
        (study.part(study.column(c.column).part), c.where) for c in study.claims
    ] + [(panel_part(study, p), p.where) for p in study.panels]:
        if where and where not in facets(place):
            raise LabError(
                f"part '{place.name}' has no facet '{where}' among {', '.join(facets(place))}"
            )
    for claim in study.claims:
        if sum(map(bool, (claim.order, claim.close, claim.rank))) != 1 or (
            claim.close and not (claim.within or claim.times)
        ):
            raise LabError(
                f"claim '{claim.text}': give one of order, close (with within or times) and rank"
            )
