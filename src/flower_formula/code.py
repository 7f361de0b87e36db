"""The function that a formula is compared with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from flower_formula.call import read_call
from flower_formula.errors import FormulaError, ShapeError
from flower_formula.names import spelled
from flower_formula.statements import Formula
from flower_formula.symbols import Declaration
from flower_formula.target import target


class NoValue(ShapeError):
    """The function divides by zero or refuses its arguments by a ``ValueError``."""


class Code:
    """The function that a formula is compared with, or none."""

    def __init__(
        self,
        function: str | Callable[..., Any] | None,
        packages: Sequence[str],
        declarations: Mapping[str, Declaration],
        formula: Formula,
    ) -> None:
        self.declarations = declarations
        self.target = target(formula)
        self.call = (
            read_call(function, packages, list(declarations)) if isinstance(function, str) else None
        )
        self.function = function if callable(function) else None
        self._run: Callable[[Mapping[str, object]], object] | None = None
        self.name = self.call.path if self.call else getattr(function, "__name__", "the function")
        if self.name == "<lambda>":
            self.name = "the function"

    @property
    def given(self) -> bool:
        return self.call is not None or self.function is not None

    def run(
        self,
        tensors: Mapping[str, Tensor],
        sizes: Mapping[str, int],
        dtype: torch.dtype,
        device: str,
    ) -> Tensor:
        """Its result as a float64 tensor on the CPU; what it makes itself has ``dtype`` by default.

        Raises:
            ShapeError: if it fails on these arguments (``NoValue`` if it refuses them).
            FormulaError: if it gives no tensor.
        """
        symbols: dict[str, object] = dict(sizes)
        for name, tensor in tensors.items():
            declared = self.declarations[name]
            if declared.domain in ("flag", "whole"):
                kind = torch.bool if declared.domain == "flag" else torch.int64
                symbols[name] = tensor.to(device, kind)
            else:
                symbols[name] = tensor.to(device) if declared.axes else float(tensor)
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            result = self._result(symbols)
        except Exception as error:
            shown = ", ".join(f"{spelled(name)}={size}" for name, size in sizes.items())
            refused = isinstance(error, ZeroDivisionError | ValueError)
            raise (NoValue if refused else ShapeError)(
                f"{self.name} fails on these arguments: {type(error).__name__}: {error}",
                self.target.left,
                "check the declared shapes and the arguments of the call",
                f"  sizes: {shown}" if shown else None,
            ) from error
        finally:
            torch.set_default_dtype(before)
        if isinstance(result, bool | int | float):
            result = torch.tensor(float(result), dtype=torch.float64)
        if not isinstance(result, Tensor):
            raise FormulaError(
                f"{self.name} gives a {type(result).__name__}, not a tensor",
                self.target.left,
                "pick one part of the result with [0]",
            )
        return result.detach().cpu().to(torch.float64)

    def replace_call(self, run: Callable[[Mapping[str, object]], object]) -> None:
        """Runs something else in place of the call (for mutation testing)."""
        self._run = run

    def _result(self, symbols: Mapping[str, object]) -> object:
        if self._run is not None:
            return self._run(symbols)
        if self.call is not None:
            return self.call.run(symbols)
        assert self.function is not None
        return self.function(*(symbols[name] for name in self._arguments()))

    def _arguments(self) -> list[str]:
        """The symbols for a Python function, as many as it takes: the parameters on the left side,
        then the declared tensors, then numbers and sizes, each in their order.
        """
        assert self.function is not None
        tensors = [d.name for d in self.declarations.values() if d.kind == "tensor"]
        numbers = [d.name for d in self.declarations.values() if d.kind in ("size", "number")]
        names = list(dict.fromkeys([*(self.target.parameters or ()), *tensors, *numbers]))
        try:
            wanted = len(inspect.signature(self.function).parameters)
        except ValueError:  # some built-in functions do not tell
            wanted = len(self.target.parameters or tensors)
        return names[:wanted]
