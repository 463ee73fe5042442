"""The table of a sweep's curves, curves.csv and curves.parquet.

It has a row for each logged round of each finished run. docs/LOG.md describes the columns: those
that name the run are those of results.csv, and COLUMNS are the others.
"""

import io
from pathlib import Path

import numpy as np
import polars

from lab.curves import NETWORK, PER_PEER, Curves, read_curves
from lab.results import CellResult, replace_file, run_columns, setting_keys
from lab.selection import Choice

COLUMNS = (
    "round",
    "steps",
    *(f"{name}_{part}" for name in PER_PEER for part in ("mean", "min", "max")),
    *NETWORK,
)


def curves_table(results: list[CellResult], choices: list[Choice]) -> polars.DataFrame:
    """The table. A column of the run whose values are all numbers has a type of numbers."""
    tables, keys = [], setting_keys(results)
    for result in results:
        if result.status == "finished":
            curves = read_curves(result.cell.folder)
            run = run_columns(result, choices, keys)
            columns = {name: _column(curves, name) for name in COLUMNS}
            tables.append(
                polars.DataFrame(columns).select(
                    *(polars.lit(value).alias(key) for key, value in run.items()), polars.all()
                )
            )
    types = {name: polars.Int64 if name == "round" else polars.Float64 for name in COLUMNS}
    if not tables:
        return polars.DataFrame(schema={"run": polars.String, **types})
    table = polars.concat(tables, how="diagonal_relaxed")
    run_names = [name for name in table.columns if name not in COLUMNS]
    text = io.StringIO(table.select(*run_names, *COLUMNS).write_csv())
    return polars.read_csv(text, infer_schema_length=None, schema_overrides=types)


def write_curves(folder: Path, results: list[CellResult], choices: list[Choice]) -> None:
    """Throws LabError if the log of a finished run is missing or damaged."""
    table = curves_table(results, choices)
    replace_file(folder / "curves.csv", table.write_csv())
    parquet = io.BytesIO()
    table.write_parquet(parquet)
    replace_file(folder / "curves.parquet", parquet.getvalue())


def _column(curves: Curves, name: str) -> polars.Series:
    if name == "round":
        return polars.Series(curves.rounds)
    spread, _, part = name.rpartition("_")
    values = curves.values.get(name)
    if values is None:
        peers = curves.peers[spread]  # NaN where a peer took no part
        values = getattr(np.ma.array(peers, mask=np.isnan(peers)), part)(axis=0).filled(np.nan)
    return polars.Series(values, dtype=polars.Float64).fill_nan(None)
