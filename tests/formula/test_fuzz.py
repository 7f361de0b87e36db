"""Random tokens and corrupted formulas: a value or a FormulaError with a place, within a second.

What sine and cosine take as their argument is tried on random formulas whose value is computed
here too: each must have it, and with one part exchanged it must agree with its own value alone.

``FLOWER_FUZZ=100000 pytest tests/formula/test_fuzz.py`` tries that many of each kind.
"""

from __future__ import annotations

import inspect
import math
import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from test_spellings import SPELLINGS, Spelling
from torch import Tensor

from flower_formula import Disagreement, FormulaError, check, evaluate

COUNT = int(os.environ.get("FLOWER_FUZZ", "1500"))
TOKENS = [
    *"abcxyzijnQKVWT0123456789+-*/=()[]{}^_,;:.|<>&'中 ", "\\\\",
    *(rf"\{name}" for name in (
        "frac sqrt sum prod left( right) exp log max cdot odot top ldots infty in le neq lfloor "
        "rfloor alpha hat underset over lVert rVert mathrm{softmax} text{if} text{否则} mathbb{R} "
        "mathbb{E} begin{cases} end{cases} begin{aligned} end{aligned} sin cos tan theta pi"
    ).split()),
    r"\cos m\theta", r"\sin 2\pi a", r"\cos (m-n)\theta", r"\cos(m\theta)", r"\sin^2 ", "sin ",
    "_{i}", r"^{\top}", "_{i=1}^{n}", "{9^{9^9}}",
]  # fmt: skip
VALUES = {
    "x": torch.randn(3), "z": torch.randn(3), "Q": torch.randn(3, 2), "K": torch.randn(4, 2),
    "V": torch.randn(4, 2), "W": torch.randn(2, 2), "a": 2.0, "b": 0.5, "c": 1.0, "theta": 0.7,
}  # fmt: skip
SYMBOLS = [
    "x [n]", "z [n]", "Q [n, d]", "K [m, d]", "V [m, d]", "W [d, d]", "a", "b", "c", r"\theta",
]  # fmt: skip


def turned(m: int, theta: Tensor, x: Tensor) -> Tensor:
    a, b, angle = x[::2], x[1::2], m * theta
    pairs = a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()
    return torch.stack(pairs, -1).flatten()


ROTARY = [
    Spelling("OK", r"""y_{2i-1} = x_{2i-1} \cos m\theta_i - x_{2i} \sin m\theta_i \\
y_{2i} = x_{2i-1} \sin m\theta_i + x_{2i} \cos m\theta_i""",
        lambda theta, x, m: turned(m, theta, x),
        [r"\theta [k]", "x [d]", "m in 0..9", "i in 1..k", "d = 2 k"]),
    Spelling("OK", r"""y = \begin{pmatrix} \cos m\theta & -\sin m\theta \\
\sin m\theta & \cos m\theta \end{pmatrix} x""",
        lambda theta, x, m: turned(m, torch.tensor([theta]), x), [r"\theta", "x [2]", "m in 0..9"]),
    Spelling("OK", r"s = \cos (m-n)\theta + \sin(m\theta) t",
        lambda theta, t, m, n: math.cos((m - n) * theta) + math.sin(m * theta) * t,
        [r"\theta", "t", "m in 0..9", "n in 0..9"]),
]  # fmt: skip


@contextmanager
def one_second(latex: str) -> Iterator[None]:
    def late(*_: object) -> None:
        pytest.fail(f"more than a second: {latex!r}")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def value_or_error(latex: str, run: Callable[[], object]) -> bool:
    """Whether there was a value; all but a value and a FormulaError is raised, with the text."""
    try:
        with one_second(latex):
            run()
    except FormulaError as error:
        start, end = error.span
        assert 0 <= start <= end, latex
        return False
    except Exception as error:
        raise AssertionError(f"{latex!r}: {error!r}") from error
    return True


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this system")
def test_random_tokens() -> None:
    chosen = random.Random(1)
    values = 0
    for _ in range(COUNT):
        latex = "".join(chosen.choices(TOKENS, k=chosen.randint(1, 14)))
        latex = latex if chosen.random() < 0.5 else f"y = {latex}"
        values += value_or_error(latex, lambda: evaluate(latex, SYMBOLS, **VALUES))  # noqa: B023
    assert values > COUNT // 1000  # some of them mean something


def corrupted(latex: str, chosen: random.Random) -> str:
    for _ in range(chosen.randint(1, 3)):
        place = chosen.randrange(len(latex) + 1)
        kind = chosen.randrange(3)
        if kind == 0:
            latex = latex[:place] + latex[place + chosen.randint(1, 3) :]
        elif kind == 1:
            latex = latex[:place] + chosen.choice(TOKENS) + latex[place:]
        else:
            start = chosen.randrange(len(latex) + 1)
            latex = latex[:place] + latex[start : start + 12] + latex[place:]
    return latex


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this system")
def test_corruptions_of_published_formulas() -> None:
    chosen = random.Random(2)
    spellings = [*SPELLINGS.values(), *ROTARY]
    for spelling in ROTARY:
        check(spelling.latex, spelling.function, spelling.symbols, count=3)
    for _ in range(COUNT):
        spelling = chosen.choice(spellings)
        latex = corrupted(spelling.latex, chosen)
        value_or_error(
            latex,
            lambda: check(
                latex, spelling.function, spelling.symbols, library=spelling.library, count=3  # noqa: B023
            ),
        )  # fmt: skip


Numbers = dict[str, float]
LATIN: dict[str, Callable[[Numbers], float]] = {
    "a": lambda v: v["a"],
    "b": lambda v: v["b"],
    "2": lambda v: 2.0,
    "x_1": lambda v: v["x_1"],
    r"\frac{a}{3}": lambda v: v["a"] / 3,
}
ANGLES: dict[str, Callable[[Numbers], float]] = {
    r"\theta": lambda v: v[r"\theta"],
    r"\phi_1": lambda v: v[r"\phi_1"],
    r"\pi": lambda v: math.pi,
    r"\frac{\pi}{b}": lambda v: math.pi / v["b"],
}
NAMES = ("a", "b", "x_1", r"\theta", r"\phi_1")
NAMES_OF = {name: (name,) for name in NAMES} | {
    "2": (), r"\pi": (), r"\frac{a}{3}": ("a",), r"\frac{\pi}{b}": ("b",),
}  # fmt: skip
SPELLED = (r"\NAME", r"\mathrm{NAME}", r"\operatorname{NAME}", "NAME")
FORMS = ("side by side", "bracket", "product", "factor", "argument")


@dataclass(frozen=True)
class Wave:
    """A number, then a sine or cosine in one of the ``FORMS``, then perhaps another function."""

    name: str
    spelled: str
    form: str
    numbers: tuple[str, str, str]
    angle: str
    squared: bool
    exponential: bool

    def latex(self) -> str:
        before, one, two = self.numbers
        name = self.spelled.replace("NAME", self.name) + "^2" * self.squared
        text = {
            "side by side": f"{name} {one} {self.angle} {two}",
            "bracket": f"{name}({one} {self.angle}) {two}",
            "product": f"{name}({one} {two}) {self.angle}",
            "factor": f"{name} ({one} - {two}) {self.angle}",
            "argument": f"{name}({self.angle} + {one}) {two}",
        }[self.form]
        return f"{before} {text}" + r" \exp(b)" * self.exponential

    def parts(self) -> tuple[str, ...]:
        return (*self.numbers, self.angle, *("b" for _ in range(self.exponential)))

    def value(self, v: Numbers) -> float:
        before, one, two = (LATIN[number](v) for number in self.numbers)
        angle = ANGLES[self.angle](v)
        argument, after = {
            "side by side": (one * angle * two, 1.0),
            "bracket": (one * angle, two),
            "product": (one * two, angle),
            "factor": ((one - two) * angle, 1.0),
            "argument": (angle + one, two),
        }[self.form]
        wave = (math.sin if self.name == "sin" else math.cos)(argument)
        wave = wave**2 if self.squared else wave
        return before * wave * after * (math.exp(v["b"]) if self.exponential else 1.0)


def wave(chosen: random.Random) -> Wave:
    one, two, three = chosen.choices(list(LATIN), k=3)
    return Wave(
        chosen.choice(("sin", "cos")),
        chosen.choice(SPELLED),
        chosen.choice(FORMS),
        (one, two, three),
        chosen.choice(list(ANGLES)),
        chosen.random() < 0.3,
        chosen.random() < 0.3,
    )


def changed(before: Wave, chosen: random.Random) -> Wave:
    """The same with one part drawn again."""
    part = chosen.choice(("name", "form", "numbers", "angle", "squared", "exponential"))
    change: dict[str, Any] = {part: getattr(wave(chosen), part)}
    return replace(before, **change)


Sum = list[tuple[str, list[Wave]]]  # signs, and the factors of each term


def latex_of(terms: Sum) -> str:
    shown = [sign + r" \cdot ".join(one.latex() for one in factors) for sign, factors in terms]
    return " ".join(shown).removeprefix("+")


def value_of(terms: Sum, v: Numbers) -> float:
    values = [math.prod(one.value(v) for one in factors) for _, factors in terms]
    return sum(-x if sign == "-" else x for (sign, _), x in zip(terms, values, strict=True))


def names_in(terms: Sum) -> list[str]:
    parts = {part for _, factors in terms for one in factors for part in one.parts()}
    return [name for name in NAMES if any(name in NAMES_OF[part] for part in parts)]


def waves(chosen: random.Random) -> Sum:
    return [
        (chosen.choice("+-"), [wave(chosen) for _ in range(chosen.randint(1, 2))])
        for _ in range(chosen.randint(1, 3))
    ]


def numbers(chosen: random.Random) -> Numbers:
    return {name: chosen.uniform(0.2, 2.0) for name in NAMES}


def test_random_waves_have_their_value() -> None:
    chosen = random.Random(3)
    for _ in range(COUNT // 5):
        terms, v = waves(chosen), numbers(chosen)
        latex = latex_of(terms)
        found = evaluate(latex, list(NAMES), **{name.strip("\\"): x for name, x in v.items()})
        assert float(found) == pytest.approx(value_of(terms, v), rel=1e-9, abs=1e-9), latex


def test_waves_with_one_part_exchanged_agree_with_their_own_value_alone() -> None:
    chosen = random.Random(4)
    accepted = refused = 0
    for _ in range(COUNT // 5):
        terms = waves(chosen)
        sign, factors = terms[-1]
        others = [*terms[:-1], (sign, [changed(factors[0], chosen), *factors[1:]])]
        latex = "y = " + latex_of(others)
        names = names_in(others)
        fixed = numbers(chosen)

        def code(*values: float) -> float:
            return value_of(terms, fixed | dict(zip(names, values, strict=True)))  # noqa: B023

        parameters = [
            inspect.Parameter(f"p{number}", inspect.Parameter.POSITIONAL_ONLY)
            for number in range(len(names))
        ]
        code.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        draws = [fixed | {name: chosen.gauss(0, 1) for name in names} for _ in range(3)]
        same = all(math.isclose(value_of(terms, v), value_of(others, v)) for v in draws)
        try:
            check(latex, code, names, count=3)
        except Disagreement:
            assert not same, latex
            refused += 1
        else:
            assert same, latex
            accepted += 1
    assert min(accepted, refused) > COUNT // 50
