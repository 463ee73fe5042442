"""Renders a report as one self-contained HTML page, without scripts or external resources."""

import html
import io
import re
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from lab.figures import ReportFigure
from lab.style import PNG_DPI
from lab.tables import TextTable

_STYLE = """
body { font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #222; background: #fff;
       margin: 0 auto; max-width: 62rem; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.5rem 0 0.25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 0.5rem; }
p, li { max-width: 46rem; }
.lead { font-size: 1.05rem; }
.small, figcaption { font-size: 0.9rem; color: #444; }
figure { margin: 1rem 0 2rem; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { max-width: 46rem; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; width: max-content; min-width: 100%; max-width: calc(100vw - 3rem);
        position: relative; left: 50%; transform: translateX(-50%); }
th, td { padding: 0.35rem 0.5rem; text-align: right; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; font-weight: 600; }
th { border-bottom: 2px solid #222; }
td { border-bottom: 1px solid #ddd; white-space: nowrap; }
td:first-child { white-space: normal; min-width: 9rem; }
pre { background: #f4f4f2; padding: 0.8rem 1rem; overflow-x: auto; font-size: 0.85rem; }
.warning { border-left: 4px solid #D55E00; padding: 0.4rem 0.9rem; background: #fdf3ec; }
@media print {
  body { max-width: none; padding: 0; font-size: 11pt; }
  figure, tr { break-inside: avoid; }
  .wide { width: auto; max-width: none; position: static; transform: none; }
  table { font-size: 6.5pt; }
  th, td { padding: 0.2rem 0.25rem; }
  td { white-space: normal; }
}
"""


@dataclass(frozen=True)
class PageContent:
    title: str
    lead: str
    warnings: list[str]
    figures: list[ReportFigure]
    table: TextTable
    method: list[str]
    commands: str
    config_name: str
    config_text: str


def save_figures(figures: list[ReportFigure], folder: Path) -> dict[str, str]:
    """Writes each figure as PNG and SVG. Returns the SVG texts by file stem."""
    folder.mkdir(parents=True, exist_ok=True)
    svg_texts = {}
    for item in figures:
        item.figure.savefig(folder / f"{item.stem}.png", dpi=PNG_DPI)
        svg_texts[item.stem] = save_svg(item.figure, folder / f"{item.stem}.svg", item.title)
    return svg_texts


def save_svg(figure: Figure, path: Path, title: str) -> str:
    """Writes the figure as SVG and returns the text, which depends on the figure alone."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Title": title})
    path.write_text(text.getvalue(), encoding="utf-8")
    return text.getvalue()


def inline_svg(text: str, stem: str, title: str) -> str:
    """The <svg> element with unique ids (prefix `stem-`) and a label for screen readers."""
    element = text[text.index("<svg") :]
    element = re.sub(r'\bid="', f'id="{stem}-', element)
    element = re.sub(r'(href="|url\()#', rf"\1#{stem}-", element)
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    return element.replace(
        "<svg ", f'<svg role="img" aria-label="{html.escape(title, quote=True)}" ', 1
    )


def render(content: PageContent, svg_texts: dict[str, str]) -> str:
    escape = html.escape
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(content.title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(content.title)}</h1>",
        f'<p class="lead">{escape(content.lead)}</p>',
    ]
    parts += [f'<p class="warning">{escape(warning)}</p>' for warning in content.warnings]
    for number, item in enumerate(content.figures, 1):
        parts.append(
            f"<figure>{inline_svg(svg_texts[item.stem], item.stem, item.title)}"
            f"<figcaption><b>Figure {number}.</b> {escape(item.caption)}</figcaption></figure>"
        )
    parts += ["<h2>All conditions</h2>", _table(content.table)]
    parts += [f'<p class="small">{escape(note)}</p>' for note in content.table.notes]
    parts += [
        "<h2>Method</h2><ul>",
        *(f"<li>{escape(line)}</li>" for line in content.method),
        "</ul>",
        "<h2>Commands that reproduce this page</h2>",
        f"<pre>{escape(content.commands)}</pre>",
        f"<details><summary>{escape(content.config_name)}, the base configuration</summary>",
        f"<pre>{escape(content.config_text)}</pre></details>",
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _table(table: TextTable) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>\n"
        for row in table.rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}</tbody></table></div>"
    )
