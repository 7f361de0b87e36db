"""The ``code:`` line: a call of one function of our packages, in a subset that can run nothing
else.

``flower_transformer.attention.scaled_dot_product_attention(Q, K, V, scale=1)[0]``: a dotted path,
then declared symbols, numbers, ``True``, ``False``, ``None`` and keywords; at the end, perhaps,
``[0]``.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flower_formula.errors import CallError, FormulaError, Span
from flower_formula.names import canonical_name, spelled

_CALL = re.compile(
    r"\s*(?P<path>[A-Za-z_][\w.]*)\s*\((?P<arguments>.*)\)\s*(?:\[(?P<item>\d+)\])?\s*$", re.S
)
_CONSTANTS: dict[str, object] = {"True": True, "False": False, "None": None}


@dataclass(frozen=True)
class Argument:
    """``keyword`` may be None; ``symbol`` names a declared symbol, otherwise ``constant`` is the
    value.
    """

    keyword: str | None
    symbol: str | None
    constant: object
    span: Span


@dataclass(frozen=True)
class Call:
    """A call that was read and whose function exists."""

    text: str
    path: str
    function: Callable[..., Any] = field(repr=False)
    arguments: tuple[Argument, ...]
    item: int | None

    def run(self, symbols: Mapping[str, object]) -> Any:
        """Calls the function with the values of the symbols."""
        positional = [self._value(a, symbols) for a in self.arguments if a.keyword is None]
        named = {
            a.keyword: self._value(a, symbols) for a in self.arguments if a.keyword is not None
        }
        result = self.function(*positional, **named)
        return result if self.item is None else result[self.item]

    @staticmethod
    def _value(argument: Argument, symbols: Mapping[str, object]) -> object:
        return argument.constant if argument.symbol is None else symbols[argument.symbol]


def read_call(text: str, packages: Sequence[str], symbols: Sequence[str]) -> Call:
    """Reads a call and finds its function.

    Args:
        text: the ``code:`` line.
        packages: modules or packages whose functions may be called.
        symbols: the declared names.

    Raises:
        CallError: with its place, for anything outside the subset, a path that does not exist or
            is not allowed, or
            an undeclared symbol.
    """
    match = _CALL.match(text)
    if not match:
        raise CallError(
            "this is no call", (0, len(text)), text, "write package.module.function(Q, K, V)"
        )
    function = resolve(match["path"], packages, text, match.start("path"))
    arguments: list[Argument] = []
    at = match.start("arguments")
    for part in _split(match["arguments"]):
        arguments.append(_argument(text, part, at, symbols))
        at += len(part) + 1
    seen_keyword = False
    for argument in arguments:
        seen_keyword = seen_keyword or argument.keyword is not None
        if seen_keyword and argument.keyword is None:
            raise CallError("a positional argument after a keyword", argument.span, text)
    item = None if match["item"] is None else int(match["item"])
    return Call(text, match["path"], function, tuple(arguments), item)


def _split(arguments: str) -> list[str]:
    parts, depth = [""], 0
    for char in arguments:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [] if parts == [""] or not arguments.strip() else parts


def _argument(text: str, part: str, at: int, symbols: Sequence[str]) -> Argument:
    start = at + len(part) - len(part.lstrip())
    span = (start, start + max(1, len(part.strip())))
    body, keyword = part.strip(), None
    if match := re.match(r"([A-Za-z_]\w*)\s*=\s*(.*)", body, re.S):
        keyword, body = match[1], match[2]
    if not body:
        raise CallError("an empty argument", span, text, "delete the comma, or name a symbol")
    if body in _CONSTANTS:
        return Argument(keyword, None, _CONSTANTS[body], span)
    if re.fullmatch(r"-?\d+", body):
        return Argument(keyword, None, int(body), span)
    if re.fullmatch(r"-?(\d+\.\d*|\.\d+|\d+)([eE]-?\d+)?", body):
        return Argument(keyword, None, float(body), span)
    if match := re.fullmatch(r"\"(\w*)\"|'(\w*)'", body):
        return Argument(keyword, None, match[1] or match[2] or "", span)
    try:
        name = canonical_name(body)
    except FormulaError as error:
        raise CallError(
            f"{body!r} is neither a declared symbol nor a number", span, text,
            "arguments are declared symbols, numbers, True, False, None",
        ) from error  # fmt: skip
    if name not in symbols:
        close = difflib.get_close_matches(name, list(symbols), n=1)
        raise CallError(
            f"undeclared symbol {body} in the call",
            span,
            text,
            f"did you mean {spelled(close[0])}?" if close else "declare it under where",
        )
    return Argument(keyword, name, None, span)


def resolve(
    path: str, packages: Sequence[str], text: str = "", offset: int = 0
) -> Callable[..., Any]:
    """The function at a dotted path inside the allowed packages.

    Raises:
        CallError: naming the first part of the path that does not exist, and the nearest name that
            does.
    """
    text = text or path
    whole: Span = (offset, offset + len(path))
    if not any(path == package or path.startswith(package + ".") for package in packages):
        raise CallError(
            f"{path} is outside the packages whose functions may be called",
            whole,
            text,
            f"allowed: {', '.join(packages)}",
        )
    parts = path.split(".")
    found: Any = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], start=1):
        before = ".".join(parts[:number])
        start = offset + len(before) + 1
        is_package = hasattr(found, "__path__")
        if part.startswith("_"):
            raise CallError(
                f"{part} is private", (start, start + len(part)), text, "call a public function"
            )
        if is_package and importlib.util.find_spec(f"{before}.{part}") is not None:
            found = importlib.import_module(f"{before}.{part}")
        elif hasattr(found, part):
            found = getattr(found, part)
        else:
            known = [name for name in dir(found) if not name.startswith("_")]
            close = difflib.get_close_matches(part, known, n=1)
            raise CallError(
                f"{before} has no {part}",
                (start, start + len(part)),
                text,
                f"did you mean {close[0]}?" if close else f"look into {before}",
            )
        module = str(getattr(found, "__module__", None) or getattr(found, "__name__", ""))
        if not any(module == package or module.startswith(package + ".") for package in packages):
            raise CallError(
                f"{part} comes from {module}, which may not be called",
                (start, start + len(part)),
                text,
            )
    if not callable(found):
        raise CallError(f"{path} is no function", whole, text)
    return found  # type: ignore[no-any-return]
