"""Reads and checks the file of a study, study.toml."""

import tomllib
from dataclasses import fields, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from lab.axes import read_variants
from lab.errors import LabError
from lab.study import (
    ATTACKERS,
    Claim,
    Column,
    Panel,
    Part,
    PublishedValues,
    Study,
    facet_names,
    panel_part,
    varied_axes,
)

T = TypeVar("T")


def read_study(folder: Path) -> Study:
    """Reads and checks `folder`/study.toml. Throws LabError naming the file and what is wrong."""
    path = folder / "study.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(
            f"{path}: {error.strerror}: the studies are the folders of {folder.parent}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: not valid TOML: {error}") from error
    try:
        variants = tuple(read_variants(path))
        document.pop("variants")
        lists = {
            "parts": _all(Part, document.pop("part", [])),
            "columns": _all(Column, document.pop("column", [])),
            "claims": _all(Claim, document.pop("claim", [])),
            "published": _all(PublishedValues, document.pop("published", [])),
            "panels": _all(Panel, document.pop("panel", [])),
        }
        study = _make(
            Study,
            {
                **document.pop("study", {}),
                "full": document.pop("full", {}),
                "folder": folder,
                "variants": variants,
                **lists,
            },
        )
        if document:
            raise LabError(f"[{next(iter(document))}] is not a table of a study")
        _check(study)
    except LabError as error:
        raise LabError(f"{path}: {error}") from error
    return replace(
        study,
        columns=tuple(
            replace(
                c,
                measure=c.measure.replace("{target}", study.target),
                select=c.select.replace("{target}", study.target),
            )
            for c in study.columns
        ),
        parts=tuple(
            replace(p, select=p.select.replace("{target}", study.target)) for p in study.parts
        ),
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
    """Throws LabError if the study uses a name that it does not define."""
    parts, columns = {part.name for part in study.parts}, {column.name for column in study.columns}
    if not parts or not columns or not study.claims:
        raise LabError("a study needs at least one part, one column and one claim")
    for name in [c.part for c in study.columns] + [p.part for p in study.panels]:
        if name and name not in parts:
            raise LabError(f"there is no part '{name}'")
    for part in study.parts:
        if part.diverged is not None and part.rates:
            raise LabError(
                f"part '{part.name}': a step size at which runs diverge is not selected: remove "
                "diverged or rates"
            )
        if part.across and [axis.key for axis in varied_axes(part)] != [part.across]:
            raise LabError(f"part '{part.name}': across is the only axis that varies, or empty")
    for panel in study.panels:
        if panel.kind not in ("curve", "dots", "lines", "scatter", "grid"):
            raise LabError(
                f"panel '{panel.title}': kind must be curve, dots, lines, scatter or grid"
            )
    for name in (
        [p.y for p in study.panels if p.kind != "curve"]
        + [p.x for p in study.panels if p.kind == "scatter"]
        + [c.column for c in study.claims]
        + [t.beside for t in study.published]
        + [name for c in study.claims for name in (*c.rank, *c.smaller)]
        + [c.breakdown for c in study.claims if c.breakdown]
    ):
        if name not in columns:
            raise LabError(f"there is no column '{name}'")
    series = {name.partition(" @ ")[0] for claim in study.claims for name in claim.series_names()}
    series |= {name for part in study.parts for name in part.variants} | {
        name for p in study.panels for name in p.variants
    }
    for name in sorted(series | {name for t in study.published for name in t.values}):
        if name not in study.variants:
            raise LabError(f"there is no variant '{name}'")
    for part, facet in [
        (study.part(study.column(c.column).part), c.facet) for c in study.claims
    ] + [(panel_part(study, p), p.facet) for p in study.panels]:
        if facet and facet not in facet_names(part):
            raise LabError(
                f"part '{part.name}' has no facet '{facet}'; it has {', '.join(facet_names(part))}"
            )
    if bool(study.beyond) != any(claim.beyond for claim in study.claims):
        raise LabError("beyond: a study with claims beyond the paper's conditions says how")
    for claim in study.claims:
        if fault := _fault_of_claim(study, claim):
            raise LabError(f"claim '{claim.text}': {fault}")


def _fault_of_claim(study: Study, claim: Claim) -> str:
    """Why no results could decide the claim, or would decide another one; empty if they can."""
    if sum(map(bool, (claim.order, claim.close, claim.rank, claim.breakdown))) != 1:
        return "give one of order, close (with within or times), rank and breakdown"
    if claim.factor != 1 and not claim.order:
        return "factor is of order alone"
    if claim.order:
        return _fault_of_margin(claim) or _fault_of_order(claim) or _fault_of_series(study, claim)
    if claim.close:
        return _fault_of_margin(claim) or _fault_of_close(claim) or _fault_of_series(study, claim)
    if claim.rank:
        if len(set(claim.rank)) != 2 or len(claim.rank) != 2:
            return "rank: give two columns"
        return _fault_of_margin(claim)
    if study.part(study.column(claim.column).part).across != ATTACKERS:
        return f"its part is not across {ATTACKERS}"
    if not claim.target > 0:
        return "breakdown: give the target, above 0, that a series reaches as long as it withstands"
    return _fault_of_margin(claim)


def _fault_of_margin(claim: Claim) -> str:
    within, times = claim.within != 0, claim.times != 0
    if not (claim.close or claim.breakdown):
        return "within and times are of close and breakdown alone" if within or times else ""
    if claim.breakdown and (times or not within):
        return "breakdown: give within, a number of attackers"
    if within == times:
        return "close: give either within or times"
    if within and not 0 < claim.within < inf:
        return f"within = {claim.within:g}: a difference above 0"
    if times and not 1 < claim.times < inf:
        return f"times = {claim.times:g}: a ratio above 1, of the larger value to the smaller one"
    return ""


def _fault_of_order(claim: Claim) -> str:
    if len(claim.order) < 2 or any(group in ([], "") for group in claim.order):
        return "order: give two or more groups, each with a series"
    if not 0 < claim.factor < inf:
        return f"factor = {claim.factor:g}: a ratio above 0"
    return ""


def _fault_of_close(claim: Claim) -> str:
    return "close: give two or more series" if len(claim.close) < 2 else ""


def _fault_of_series(study: Study, claim: Claim) -> str:
    """A series that is named twice, or that the part does not have."""
    names = claim.series_names()
    if len(set(names)) != len(names):
        return f"the series '{next(n for n in names if names.count(n) > 1)}' is named twice"
    part = study.part(study.column(claim.column).part)
    facets = facet_names(part)
    across = any(" @ " in name for name in names)
    for name in names:
        series, at, facet = name.partition(" @ ")
        if series not in study.series_of(part):
            return f"part '{part.name}' has no series '{series}'"
        if bool(at) != across:
            return f"'{name}' has no facet (SERIES @ FACET), and other series of the claim have one"
        if at and facet not in facets:
            known = ", ".join(filter(None, facets)) or "none"
            return f"part '{part.name}' has no facet '{facet}'; it has {known}"
    if across and claim.facet:
        return "its series name their facets: remove facet"
    return ""
