"""What every notebook of the site begins with, and how it publishes numbers and tables.

`start` picks the device and makes the run repeatable. `record` gives a number a name under which
a page can quote it, and `table` shows a small table; both print what CPU and GPU agree on.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Sequence

import torch
from IPython.display import display

from flower_transformer.device import pick_device, set_deterministic

RECORD_MIME = "application/vnd.flower.record+json"


def start(seed: int = 0) -> torch.device:
    """Begin a notebook: repeatable numbers, on the device that FLOWER_DEVICE names.

    Args:
        seed: seed of torch's generators.

    Returns:
        The device to move tensors to. Draw random tensors on the CPU first, then move them:
        CPU and GPU give different streams for one seed.
    """
    device = pick_device()
    set_deterministic(seed)
    return device


def record(name: str, value: float | int | bool | torch.Tensor, *, digits: int = 3) -> None:
    """Display a number and publish it under a name, for pages to quote.

    Args:
        name: lower-case words joined by hyphens, unique in the notebook.
        value: a number, or a tensor that holds one. Integers and booleans are kept as they are.
        digits: significant digits kept of a float. Choose as many as every device reproduces.

    Raises:
        ValueError: the name is malformed, the value is not finite, or digits is < 1.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"a record is named like-this, got {name!r}")
    if digits < 1:
        raise ValueError(f"digits must be at least 1, got {digits}")
    plain = value.item() if isinstance(value, torch.Tensor) else value
    if not math.isfinite(plain):
        raise ValueError(f"record {name!r} must be finite, got {plain}")
    if isinstance(plain, float):
        plain = float(f"{plain:.{digits}g}") + 0.0  # + 0.0 turns -0.0 into 0.0
    display_bundle({"text/plain": f"{name} = {plain}", RECORD_MIME: {"name": name, "value": plain}})


def table(
    rows: Sequence[Sequence[str | int | float | bool]], *, header: Sequence[str], decimals: int = 3
) -> None:
    """Display a small table, as HTML for pages and as text for terminals.

    Args:
        rows: the cells; the first one of each row names it.
        header: one name a column.
        decimals: decimals of the floats.

    Raises:
        ValueError: a row is not as long as the header.
    """
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"a row has {len(row)} cells, the header has {len(header)}")
    cells = [[_text(cell, decimals) for cell in row] for row in rows]
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row">{html.escape(row[0])}</th>'
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in cells
    )
    as_html = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    widths = [max(map(_width, column)) for column in zip(header, *cells, strict=True)]
    lines = [
        "  ".join(
            " " * (width - _width(cell)) + cell for cell, width in zip(row, widths, strict=True)
        )
        for row in ([*header], *cells)
    ]
    display_bundle({"text/plain": "\n".join(lines), "text/html": as_html})


def display_bundle(bundle: dict[str, object]) -> None:
    """Display one output that exists in several forms.

    Args:
        bundle: mime type -> content; a reader picks the richest form it knows.
    """
    display(bundle, raw=True)  # type: ignore[no-untyped-call]


def _text(cell: str | int | float | bool, decimals: int) -> str:
    if isinstance(cell, bool):
        return "是" if cell else "否"
    if isinstance(cell, float) and math.isfinite(cell):
        return f"{round(cell, decimals) + 0.0:.{decimals}f}"
    return str(cell)


def _width(text: str) -> int:
    """Columns that a text takes in a terminal: a Chinese character takes two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
