r"""The lines of `where` as math: `W_i^Q [d_model, d_k] for i in 1..h` is W_i^Q ∈ ℝ^{d_model ×
d_k}, i = 1, …, h.

What a declaration means is decided in `flower_formula.symbols`; this only draws what the author
wrote.
"""

from __future__ import annotations

import re

_HEAD = re.compile(
    r"^\s*(?P<name>[^\[\]=~<>]+?)\s*(?:\[(?P<shape>[^\]]*)\])?\s*"
    r"(?P<tail>(?:(?<=[\s\]])(?:for|in|\\in|\\sim)(?![A-Za-z])|[~=>]).*)?$",
    re.S,
)


def parts_of(declaration: str) -> tuple[str, str]:
    """The symbol and its shape, range or domain, each as LaTeX (the second may be empty)."""
    match = _HEAD.match(declaration)
    if match is None:
        return size_latex(declaration), ""
    name, shape, tail = match["name"].strip(), match["shape"], (match["tail"] or "").strip()
    axes = [_axis(part.strip()) for part in shape.split(",")] if shape else []
    if len(axes) > 1:  # a sum beside a \times
        axes = [f"({axis})" if re.search(r"[-+]", axis) else axis for axis in axes]
    size = r" \times ".join(axes)
    set_ = re.match(r"(?:in|\\in)\s*(?P<open>[{(\[])(?P<items>.*)[})\]]$", tail)
    if set_:
        braces = {"{": (r"\{", r"\}"), "(": ("(", ")"), "[": ("[", "]")}[set_["open"]]
        domain = braces[0] + size_latex(set_["items"]) + braces[1]
        return size_latex(name), rf"\in {domain}" + (f"^{{{size}}}" if size else "")
    belongs = rf"\in \mathbb{{R}}^{{{size}}}" if size else ""
    if not tail:
        return size_latex(name), belongs
    if tail.startswith("for"):
        ranges = r",\ ".join(_range(part) for part in tail[3:].split(","))
        return size_latex(name), rf"{belongs},\ {ranges}" if belongs else ranges
    if tail.startswith(("in", r"\in")):
        if not size:
            return size_latex(name), _range(tail).lstrip()
        values = _range(tail).lstrip().removeprefix("= ")
        return size_latex(name), rf"\in \{{{values}\}}^{{{size}}}"
    if tail.startswith(("~", r"\sim")):
        law = re.sub(r"^(?:~|\\sim)\s*", "", tail)
        law = re.sub(r"^([NU])\s*\(", r"\\mathcal{\1}(", law)
        return size_latex(name), rf"{belongs}{',' if belongs else ''}\ \sim {size_latex(law)}"
    return size_latex(name), rf"{belongs},\ {size_latex(tail)}" if belongs else size_latex(tail)


def size_latex(text: str) -> str:
    r"""An expression as LaTeX: unbraced words become words, `d_model` is `d_{\text{model}}`."""
    text = text.strip()
    text = re.sub(r"_([A-Za-z]\w+)", r"_{\\text{\1}}", text)
    return re.sub(r"(?<![\\A-Za-z{])([A-Za-z]{2,})(?![A-Za-z}])", r"\\mathit{\1}", text)


def _axis(part: str) -> str:
    if ".." not in part:
        return size_latex(part)
    lower, upper = (side.strip() for side in part.split("..", 1))
    if lower == "1":
        return size_latex(upper)
    if lower == "0" and re.search(r"-\s*1$", upper):
        return size_latex(re.sub(r"\s*-\s*1$", "", upper))
    return size_latex(f"{upper} - {lower} + 1")


def _range(text: str) -> str:
    """`i in 1..h` as i = 1, …, h."""
    match = re.match(
        r"\s*(?P<name>\S*?)\s*(?:\\in|\bin)\s+(?P<lower>.+?)\s*\.\.\s*(?P<upper>.+)$", text
    )
    if match is None:
        return size_latex(text)
    name, lower, upper = (size_latex(match[part]) for part in ("name", "lower", "upper"))
    return rf"{name} = {lower}, \ldots, {upper}"
