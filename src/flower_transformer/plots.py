"""Figures for notebooks: one deterministic SVG each, legible on light and dark and when narrow.

Text stays text and takes the font of the page, axes take its colour (``currentColor``), and series
have colours of middling luminance, at least 3:1 against white and against black. Write symbols in
Unicode ("√dₖ", "d = 64"): mathtext is off, as it can't be mixed with Chinese.

Values that are drawn should be rounded first, since the SVG is compared as text between devices.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.rcsetup import cycler
from torch import Tensor

from flower_transformer.notebook import display_bundle

BLUE, ORANGE, GREEN, PURPLE, GRAY = "#2f7fd1", "#d9640f", "#2a9461", "#b056c4", "#808080"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, GRAY)
WIDTH = 480  # one unit of the SVG is one pixel of a figure shown at its natural width
MAX_BYTES = 60_000

# Text and axes keep matplotlib's black, which `show` turns into currentColor.
STYLE: Any = {
    "axes.prop_cycle": cycler(color=COLORS, marker=("o", "s", "^", "D", "v")),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "DejaVu Sans",  # comes with matplotlib: one layout on every machine
    "font.size": 14,
    "lines.linewidth": 2,
    "lines.markersize": 6,
    "svg.fonttype": "none",
    "svg.hashsalt": "flower",
    "text.parse_math": False,
}
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"


def figure(*, height: int = 300) -> tuple[Figure, Axes]:
    """Make an empty figure of the house style.

    Args:
        height: height in units of the SVG; the width is always 480.

    Returns:
        The figure and its axes. It needs no closing: pyplot does not know it.
    """
    with mpl.rc_context(STYLE):
        fig = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")
        return fig, fig.subplots()


def label_axes(ax: Axes, *, x: str, y: str) -> None:
    """Name both axes; the vertical one above the plot, where it is read without tilting the head.

    Args:
        ax: the axes.
        x: what the horizontal axis shows.
        y: what the vertical axis shows.
    """
    ax.set_xlabel(x)
    ax.set_title(y, loc="left", fontsize=14)


def log_axis(ax: Axes, axis: str, ticks: Sequence[float]) -> None:
    """Make one axis logarithmic, with plain numbers at the given ticks and nowhere else.

    Args:
        ax: the axes.
        axis: "x" or "y".
        ticks: where the labels stand.
    """
    one = {"x": ax.xaxis, "y": ax.yaxis}[axis]
    (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
    one.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    one.set_ticks([], minor=True)


def line(
    ax: Axes, x: Sequence[float], y: Sequence[float], *, label: str, spread: Sequence[float] = ()
) -> None:
    """Draw one series, with a band of plus and minus its spread.

    Args:
        ax: the axes.
        x: abscissae.
        y: ordinates.
        label: name in the legend.
        spread: half-width of the band at each x; no band when left out.
    """
    (drawn,) = ax.plot(x, y, label=label)
    if spread:
        low = [a - b for a, b in zip(y, spread, strict=True)]
        high = [a + b for a, b in zip(y, spread, strict=True)]
        ax.fill_between(x, low, high, color=drawn.get_color(), alpha=0.25, linewidth=0)


def legend(fig: Figure) -> None:
    """Write the legend above the plot, one series a line, where no curve can run into it.

    Args:
        fig: the figure whose series are listed.
    """
    fig.legend(loc="outside upper left", frameon=False, fontsize=13)


def heat_map(
    ax: Axes,
    values: Tensor,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    texts: Sequence[Sequence[str]] | None = None,
) -> None:
    """Draw a matrix as cells whose opacity is the value: 0 is the page, 1 is full blue.

    Args:
        ax: the axes.
        values: (n, m), within [0, 1]; booleans count as 0 and 1.
        rows: n names, from top to bottom.
        columns: m names.
        texts: what to write into the cells, n rows of m.

    Raises:
        ValueError: a value lies outside [0, 1], or the names do not fit the shape.
    """
    matrix = values.detach().cpu().to(torch.float64)
    if tuple(matrix.shape) != (len(rows), len(columns)):
        names = f"{len(rows)} row and {len(columns)} column names"
        raise ValueError(f"values {tuple(matrix.shape)} do not fit {names}")
    if matrix.numel() and not 0 <= matrix.min() <= matrix.max() <= 1:
        low, high = float(matrix.min()), float(matrix.max())
        raise ValueError(f"opacities must lie in [0, 1], got {low} to {high}")
    for i, row in enumerate(matrix.tolist()):
        for j, value in enumerate(row):
            cell = Rectangle((j - 0.5, i - 0.5), 1, 1, fc=(BLUE, value), ec="black", lw=0.8)
            ax.add_patch(cell)
            if texts is not None:
                ax.text(j, i, texts[i][j], ha="center", va="center_baseline", fontsize=14)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_aspect("equal")
    ax.xaxis.set_ticks(range(len(columns)), columns)
    ax.yaxis.set_ticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def show(fig: Figure, *, alt: str) -> None:
    """Display a figure as one SVG.

    Args:
        fig: a figure made by `figure`.
        alt: what the figure shows, in a sentence, for those who cannot see it.

    Raises:
        ValueError: alt is empty, or the SVG is larger than 60 KB.
    """
    svg = to_svg(fig, alt=alt)
    display_bundle({"image/svg+xml": svg, "text/plain": f"[图] {alt}"})


def to_svg(fig: Figure, *, alt: str) -> str:
    """Return the SVG that `show` displays: the same bytes for the same figure.

    Args:
        fig: a figure made by `figure`.
        alt: what the figure shows.

    Returns:
        An ``<svg>`` element that can stand in HTML: no declaration, no style sheet, ids of its
        own, as wide as its box.

    Raises:
        ValueError: alt is empty, or the SVG is larger than 60 KB.
    """
    if not alt.strip():
        raise ValueError(f"a figure needs an alt text, got {alt!r}")
    drawn = io.StringIO()
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        # Layout needs glyph widths, and the font that comes with matplotlib has no Chinese. The
        # text is not drawn with that font: it stays text, and the browser finds the glyphs.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        fig.savefig(drawn, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = _for_html(drawn.getvalue(), alt)
    if len(svg.encode()) > MAX_BYTES:
        raise ValueError(f"the figure has {len(svg.encode())} bytes, at most {MAX_BYTES} allowed")
    return svg


def _for_html(drawn: str, alt: str) -> str:
    """Turn matplotlib's SVG document into an element that fits any page."""
    ElementTree.register_namespace("", _SVG.strip("{}"))
    root = ElementTree.fromstring(drawn)
    for parent in list(root.iter()):
        for child in list(parent):
            # a <style> would apply to the whole page; the rest is invisible
            invisible = child.get("style") == "fill: none" and child.get("clip-path") is None
            if child.tag in (f"{_SVG}metadata", f"{_SVG}style") or invisible:
                parent.remove(child)

    prefix = "fig-" + hashlib.sha256((alt + drawn).encode()).hexdigest()[:8]
    referenced = set(re.findall(r'(?:url\(|href=")#([\w-]+)', drawn))
    for element in root.iter():
        for name, text in list(element.attrib.items()):
            del element.attrib[name]
            if name == "id" and text not in referenced:
                continue
            element.set(name.replace(_XLINK, ""), _attribute(name, text, prefix))

    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "width": "100%",
        "role": "img",
        "aria-labelledby": f"{prefix}-title",
        "fill": "currentColor",
        "stroke-linejoin": "round",
        "stroke-linecap": "butt",
    }
    title = ElementTree.Element(f"{_SVG}title", {"id": f"{prefix}-title"})
    title.text = alt
    root.insert(0, title)
    for element in root.iter():
        element.tail = None
        if element.text is not None and not element.text.strip():
            element.text = None
    return ElementTree.tostring(root, encoding="unicode")


def _attribute(name: str, text: str, prefix: str) -> str:
    """Rewrite one attribute: own ids, the page's colour and font, two decimals."""
    if name == "id":
        return f"{prefix}-{text}"
    text = re.sub(r"(^|url\()#(?=[\w-]+(\)|$))", rf"\g<1>#{prefix}-", text)
    if name == "style":
        text = re.sub(r"font-family:[^;]*;?\s*", "", text)
        return text.replace("#000000", "currentColor")
    text = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{round(float(number[0]), 2) + 0.0:g}", text)
    return " ".join(text.split())
