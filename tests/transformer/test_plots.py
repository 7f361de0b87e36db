"""Figures are deterministic, stand alone in a page, and read on light and dark."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import torch
from matplotlib.figure import Figure

from flower_transformer import plots

DRAW = """
from flower_transformer import plots
fig, ax = plots.figure()
plots.line(ax, [1, 10, 100], [1.0, 2.0, 3.0], label="甲", spread=[0.1, 0.1, 0.1])
plots.line(ax, [1, 10, 100], [3.0, 2.0, 1.0], label="乙")
plots.log_axis(ax, "x", [1, 10, 100])
plots.label_axes(ax, x="维数 dₖ", y="方差")
plots.legend(fig)
print(plots.to_svg(fig, alt="两条线"))
"""


def draw(values: list[float] = [1.0, 2.0, 3.0]) -> Figure:  # noqa: B006
    fig, ax = plots.figure()
    plots.line(ax, range(len(values)), values, label="甲", spread=[0.1] * len(values))
    plots.label_axes(ax, x="维数", y="方差")
    plots.legend(fig)
    return fig


def luminance(color: str) -> float:
    """Relative luminance of WCAG."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("color", plots.COLORS)
def test_colours_read_on_white_and_on_black(color: str) -> None:
    assert 1.05 / (luminance(color) + 0.05) >= 3
    assert (luminance(color) + 0.05) / 0.05 >= 3


def test_two_processes_draw_the_same_bytes() -> None:
    runs = [
        subprocess.run([sys.executable, "-c", DRAW], capture_output=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stderr == b"", "Chinese labels must not warn about missing glyphs"


def test_svg_stands_in_any_page() -> None:
    svg = plots.to_svg(draw(), alt="一条线 <1>")
    root = ElementTree.fromstring(svg)
    assert root.attrib["width"] == "100%"
    assert "height" not in root.attrib
    assert root.attrib["viewBox"] == "0 0 480 300"
    assert root.attrib["role"] == "img"
    title = root[0]
    assert title.text == "一条线 <1>"
    assert root.attrib["aria-labelledby"] == title.attrib["id"]
    assert "<style" not in svg, "it would apply to the whole page"
    assert "<?xml" not in svg
    assert "<metadata" not in svg


def test_text_and_axes_take_the_page_s_colour_and_font() -> None:
    svg = plots.to_svg(draw(), alt="一条线")
    assert "#000000" not in svg
    assert "currentColor" in svg
    assert "font-family" not in svg
    assert ">维数</text>" in svg, "text stays text"
    assert set(re.findall(r"#[0-9a-f]{6}\b", svg)) == {plots.BLUE}


def test_font_is_large_enough() -> None:
    sizes = [
        float(size) for size in re.findall(r"font-size: ([\d.]+)px", plots.to_svg(draw(), alt="x"))
    ]
    assert sizes
    assert min(sizes) >= 11


def test_ids_of_two_figures_do_not_clash() -> None:
    svgs = [plots.to_svg(draw([1.0, 2.0]), alt="甲"), plots.to_svg(draw([1.0, 2.0]), alt="乙")]
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in svgs]
    assert ids[0]
    assert not ids[0] & ids[1]
    for svg, own in zip(svgs, ids, strict=True):
        references = re.findall(r'(?:href="|url\()#([^")]+)', svg)
        assert references
        assert set(references) <= own


def test_heat_map() -> None:
    fig, ax = plots.figure()
    values = torch.tensor([[0.0, 0.5, 1.0]])
    plots.heat_map(ax, values, rows=["甲"], columns=["a", "b", "c"], texts=[["0", "½", "1"]])
    svg = plots.to_svg(fig, alt="一行")
    assert "½" in svg
    assert "fill-opacity: 0.5" in svg or "opacity: 0.5" in svg


def test_errors_name_the_values() -> None:
    fig, ax = plots.figure()
    with pytest.raises(ValueError, match="needs an alt text, got ' '"):
        plots.to_svg(fig, alt=" ")
    with pytest.raises(ValueError, match=r"\[0, 1\], got 0.0 to 2.0"):
        plots.heat_map(ax, torch.tensor([[0.0, 2.0]]), rows=["a"], columns=["b", "c"])
    with pytest.raises(ValueError, match=r"values \(1, 2\) do not fit 1 row and 1 column names"):
        plots.heat_map(ax, torch.tensor([[0.0, 1.0]]), rows=["a"], columns=["b"])


def test_too_large_a_figure_is_refused() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(20000, generator=generator).tolist()
    with pytest.raises(ValueError, match=r"has \d+ bytes, at most 60000 allowed"):
        plots.to_svg(draw(points), alt="太多的点")


def test_show_displays_one_svg(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, object]] = []
    monkeypatch.setattr(plots, "display_bundle", shown.append)
    plots.show(draw(), alt="一条线")
    assert [set(bundle) for bundle in shown] == [{"image/svg+xml", "text/plain"}]
    assert shown[0]["text/plain"] == "[图] 一条线"
