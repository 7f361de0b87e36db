"""Draws sizes and tensors for the symbols of a formula."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from flower_formula import ast
from flower_formula.calls import arithmetic
from flower_formula.errors import DeclarationError
from flower_formula.names import spelled
from flower_formula.symbols import Declaration

SMALLEST, LARGEST = 2, 5


@dataclass(frozen=True)
class Draw:
    """One set of values: sizes by name, and a float64 tensor for each declared tensor."""

    sizes: dict[str, int]
    tensors: dict[str, Tensor]


def free_sizes(declarations: Mapping[str, Declaration]) -> list[str]:
    """The sizes that are drawn (not those made of others)."""
    return [d.name for d in declarations.values() if d.kind == "size" and d.value is None]


def draws(declarations: Mapping[str, Declaration], count: int, seed: int) -> list[Draw]:
    """``count`` draws; sizes lie between 2 and 5 (or as far as needed to be all different), then
    each one is 1 once, or as small as its declaration (``c > 1``) allows.

    Every draw has other sizes. Within a draw no two sizes are equal, so that a transposed or
    exchanged symbol shows.
    """
    least = {name: declarations[name].least for name in free_sizes(declarations)}
    chosen = random.Random(seed)
    plans: list[dict[str, int]] = []
    for _ in range(max(1, count - len(least))):
        plan = _plan(chosen, least)
        for _ in range(20):
            if plan not in plans:
                break
            plan = _plan(chosen, least)
        plans.append(plan)
    plans += [_plan(chosen, least, name) for name in least]
    generator = torch.Generator().manual_seed(seed)
    return [_draw(declarations, plan, generator) for plan in plans]


def _plan(
    chosen: random.Random, least: Mapping[str, int], smallest: str | None = None
) -> dict[str, int]:
    """Different sizes by name, none below its least; ``smallest`` has just that."""
    pool = range(SMALLEST, max(LARGEST, SMALLEST + len(least) - 1) + 1)
    plan = dict(zip(least, chosen.sample(pool, len(least)), strict=True))
    if smallest is not None:
        plan[smallest] = least[smallest]
    for name, low in least.items():
        others = [size for other, size in plan.items() if other != name]
        if name != smallest and (plan[name] < low or plan[name] in others):
            low = max(low, SMALLEST)
            plan[name] = chosen.choice(
                [n for n in range(low, low + len(least) + 3) if n not in others]
            )
    return plan


def same_sizes(declarations: Mapping[str, Declaration], draw: Draw, count: int) -> list[Draw]:
    """``count`` draws of other tensors with the sizes of this one."""
    generator = torch.Generator().manual_seed(count)
    return [_draw(declarations, draw.sizes, generator) for _ in range(count)]


def _draw(
    declarations: Mapping[str, Declaration], plan: Mapping[str, int], generator: torch.Generator
) -> Draw:
    """A draw with the sizes of the plan, and with its numbers (``t in 1..9``) where it has some."""
    sizes = dict(plan)
    waiting = [d for d in declarations.values() if d.kind == "size" and d.value is not None]
    while waiting:
        ready = [
            d for d in waiting if d.value is not None and arithmetic(d.value, sizes) is not None
        ]
        if not ready:
            source = waiting[0].source
            raise DeclarationError(
                f"the size {spelled(waiting[0].name)} cannot be computed",
                (0, len(source)),
                source,
                "write it as a product or sum of drawn sizes, for example `d_model = h d_k`",
            )
        for declared in ready:
            assert declared.value is not None
            sizes[declared.name] = arithmetic(declared.value, sizes) or 0
            waiting.remove(declared)
    for declared in declarations.values():
        if declared.kind == "number" and declared.name not in plan:
            entry = declared.ranges[0]
            lower, upper = (_size(bound, sizes, declared) for bound in (entry.lower, entry.upper))
            if upper < lower:
                continue
            span = upper - lower + 1
            sizes[declared.name] = lower + int(torch.randint(span, (1,), generator=generator))
    tensors = {
        d.name: _tensor(d, sizes, generator) for d in declarations.values() if d.kind == "tensor"
    }
    return Draw(sizes, tensors)


def _tensor(declared: Declaration, sizes: dict[str, int], generator: torch.Generator) -> Tensor:
    shape = []
    for axis in declared.axes:
        size = _size(axis.size, sizes, declared)
        shape.append(size)
    if declared.domain == "flag":
        flags = torch.rand(shape, generator=generator, dtype=torch.float64) < 0.5
        if shape:
            flags[..., torch.randint(shape[-1], (1,), generator=generator)] = True
        return flags.to(torch.float64)
    if declared.domain == "whole":
        entry = declared.ranges[0]
        lower, upper = (_size(bound, sizes, declared) for bound in (entry.lower, entry.upper))
        drawn = torch.randint(lower, max(lower, upper) + 1, shape, generator=generator)
        return drawn.to(torch.float64)
    if declared.domain in ("above", "from"):
        drawn = torch.rand(shape, generator=generator, dtype=torch.float64) * 1.5 + 0.25
        return drawn + declared.bounds[0]
    if declared.domain == "between":
        low, high = declared.bounds
        return torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _size(node: ast.Node, sizes: dict[str, int], declared: Declaration) -> int:
    size = arithmetic(node, sizes)
    if size is None or size < 0:
        raise DeclarationError(
            "this shape is not a whole number for all sizes",
            (0, len(declared.source)),
            declared.source,
            "declare the larger size as a product, for example `d_model = h d_k`",
        )
    return size
