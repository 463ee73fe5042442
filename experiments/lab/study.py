"""A study reproduces a published result. Its study.toml has the sweeps, measures and claims.

lab/study_file.py reads it; experiments/papers/README.md describes the format.
"""

import itertools
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.axes import Axis, parse_axes, parse_axis
from lab.cells import SEED
from lab.conditions import short_keys
from lab.errors import LabError
from lab.selection import SELECTION_SEEDS

ATTACKERS = "attack.peers"


@dataclass(frozen=True)
class Part:
    """One sweep of a study: a grid over its variants."""

    name: str
    config: str  # the base configuration, a TOML file in the study's folder
    axes: tuple[str, ...]  # as sweep.py takes them
    rates: str = ""  # step sizes to select from; empty: no selection
    select: str = "test_loss"  # the measure that selects the step size
    selection_seeds: str = SELECTION_SEEDS  # of the runs that select it; none is reported
    variants: tuple[str, ...] = ()  # names of the study's variants; empty: all
    full: bool = True  # if the full-size study has this part
    # The value of every column in a run that diverged, as under an attack. Without it such a run
    # has none, and the study cannot be complete.
    diverged: float | None = None
    # The only varied axis, whose values are the columns of one table for each column of the part.
    across: str = ""


@dataclass(frozen=True)
class Column:
    """One number per run.

    `measure` is a measure of lab/measure.py, or `topology KEY [DECAY]` for a field of the report on
    the mixing matrix.
    """

    name: str
    measure: str
    part: str = ""  # empty: the first part
    percent: bool = False
    unit: str = ""  # "B" is written as kB, MB, …
    select: str = ""  # the measure that selects this column's step size; empty: that of the part
    note: str = ""  # text below the table


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: one of `order`, `close`, `rank`, `breakdown`. See lab/claims.py."""

    text: str
    column: str
    facet: str = ""  # as the table names it; empty: every facet
    # Series, or lists of series, from better to worse. `ring @ n = 8` is a series in one facet.
    order: tuple[Any, ...] = ()
    factor: float = 1  # of `order`: the least ratio of the better to the worse
    close: tuple[str, ...] = ()  # series whose means differ by at most …
    within: float = 0  # … this difference, in the column's unit, …
    times: float = 0  # … or this ratio
    # Two columns: the first ranks the series as `column` does, and better than the second.
    rank: tuple[str, ...] = ()
    smaller: tuple[str, ...] = ()  # columns of `rank` of which a smaller value is better
    # A column with the predicted breakdown point of each series: how many attackers it withstands.
    # The part's table is across attack.peers. `within` is between two numbers of attackers: 1.5
    # for a difference of one at most.
    breakdown: str = ""
    target: float = 0  # the value that a series reaches as long as it withstands the attackers
    beyond: bool = False  # judged under other conditions than the paper's: Study.beyond

    def series_names(self) -> list[str]:
        """Every series in `order` or `close`."""
        return [
            name
            for group in (*self.order, *self.close)
            for name in (group if isinstance(group, list) else [group])
        ]


@dataclass(frozen=True)
class PublishedValues:
    """Values from the paper, in a column of the table beside ours."""

    name: str  # heading
    source: str  # paper, and its table or figure
    beside: str  # the column of ours before it
    # series → value, or series → facet → value
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Panel:
    """One panel of the figure: curves, or columns as dots, lines, a scatter plot or a grid."""

    title: str
    kind: str  # curve | dots | lines | scatter | grid
    y: str  # the name of a curve or of a column
    # curve: round | steps | bytes_sent | seconds; lines, grid: an axis; scatter: a column
    x: str = "round"
    part: str = ""
    facet: str = ""  # empty: the first
    variants: tuple[str, ...] = ()  # empty: all
    log: str = ""  # the logarithmic axes: "x", "y", "xy"
    xlabel: str = ""
    ylabel: str = ""
    ylim: tuple[float, ...] = ()
    xlim: tuple[float, ...] = ()
    target: float | None = None  # a horizontal line


@dataclass(frozen=True)
class Study:
    folder: Path
    title: str
    claim: str  # the paper's main claim, in our words
    source: str
    parts: tuple[Part, ...]
    columns: tuple[Column, ...]
    claims: tuple[Claim, ...]
    published: tuple[PublishedValues, ...]
    panels: tuple[Panel, ...]
    variants: tuple[str, ...]
    target: str = ""  # replaces {target} in measures
    beyond: str = ""  # in which way the conditions of some claims are not those of the paper
    # Changes of the full-size study: config, axes, rates, target, beyond, variants (a file).
    full: dict[str, Any] = field(default_factory=dict)
    variants_file: str = "study.toml"

    @property
    def name(self) -> str:
        return self.folder.name

    def part(self, name: str) -> Part:
        """The part of this name; the first part if the name is empty."""
        return next((part for part in self.parts if name in ("", part.name)), self.parts[0])

    def series_of(self, part: Part) -> tuple[str, ...]:
        """The variants of a part."""
        return part.variants or self.variants

    def columns_of(self, part: Part) -> list[Column]:
        return [column for column in self.columns if self.part(column.part) is part]

    def selects_of(self, part: Part) -> list[str]:
        """The measures that select a step size of a part; the first one is the part's."""
        own = [column.select for column in self.columns_of(part) if column.select]
        return list(dict.fromkeys([part.select, *own]))

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def full_size(study: Study) -> Study:
    """The study with the changes of its [full] table: data, model, step sizes and target."""
    if not study.full:
        raise LabError(f"{study.name} has no full size: its study.toml has no [full] table")
    extra = [parse_axis(text) for text in study.full.get("axes", ())]
    target = str(study.full.get("target", study.target))

    def with_full_target(text: str) -> str:
        return text.replace(study.target, target) if study.target else text

    parts = tuple(
        replace(
            part,
            config=study.full.get("config", part.config),
            axes=merge_axes(part.axes, extra),
            select=with_full_target(part.select),
            rates=study.full.get("rates", part.rates) if part.rates else "",
        )
        for part in study.parts
        if part.full
    )
    kept = {part.name: ["", *facet_names(part)] for part in parts}
    columns = tuple(
        replace(c, measure=with_full_target(c.measure), select=with_full_target(c.select))
        for c in study.columns
        if study.part(c.part).name in kept
    )
    names = {column.name for column in columns}
    return replace(
        study,
        parts=parts,
        columns=columns,
        target=target,
        beyond=study.full.get("beyond", study.beyond),
        published=(),
        variants_file=study.full.get("variants", study.variants_file),
        claims=tuple(
            c
            for c in study.claims
            if c.column in names and c.facet in kept[study.part(study.column(c.column).part).name]
        ),
        panels=tuple(
            replace(p, facet=p.facet if p.facet in kept[part] else "")
            for p in study.panels
            if (part := panel_part(study, p).name) in kept
        ),
    )


def facet_names(part: Part) -> list[str]:
    """Every facet of a part's grid, as its tables name it: `alpha = 0.1, peers = 25`."""
    varied = varied_axes(part)
    return [
        facet_at(part, dict(zip((axis.key for axis in varied), values, strict=True)))
        for values in itertools.product(*(axis.values for axis in varied))
    ]


def facet_at(part: Part, labels: dict[str, str]) -> str:
    """The facet of a grid point: its values on the varied axes, without variant and seed."""
    names = short_keys(axis.key for axis in varied_axes(part))
    return ", ".join(f"{name} = {labels[key]}" for key, name in names.items())


def varied_axes(part: Part) -> list[Axis]:
    return [
        axis for axis in parse_axes(list(part.axes)) if axis.key != SEED and len(axis.values) > 1
    ]


def value_label(value: str) -> str:
    """A value of an axis in a table or figure: a list is named by its length."""
    return str(len(json.loads(value))) if value.startswith("[") else value


def axis_of(part: Part, key: str) -> Axis:
    """The axis of a part with this key."""
    return next(axis for axis in parse_axes(list(part.axes)) if axis.key == key)


def panel_part(study: Study, panel: Panel) -> Part:
    return study.part(panel.part if panel.kind == "curve" else study.column(panel.y).part)


def merge_axes(axes: tuple[str, ...], extra: list[Axis]) -> tuple[str, ...]:
    """The axes, without those that `extra` replaces, followed by the extra axes."""
    replaced = {axis.key for axis in extra}
    return (
        *(text for text in axes if parse_axis(text).key not in replaced),
        *(f"{axis.key}={','.join(axis.values)}" for axis in extra),
    )
