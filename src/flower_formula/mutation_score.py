"""How many wrong versions of a formula, and of the function it describes, the check refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from flower_formula.agreement import largest_error
from flower_formula.call import read_call
from flower_formula.checker import Checker
from flower_formula.code import Code
from flower_formula.draw import draws
from flower_formula.environment import NeedsReading
from flower_formula.errors import FormulaError
from flower_formula.evaluator import Evaluator
from flower_formula.mutate import mutants
from flower_formula.mutate_code import code_mutants, reached_lines
from flower_formula.statements import Formula, read_formula
from flower_formula.symbols import read_declarations
from flower_formula.target import Definition, drawn_numbers, names, target

OTHER_DRAWS = 40  # other draws, on which a mutant that the check accepted must equal the formula


@dataclass
class Score:
    """``refused`` and ``equal`` count mutants; ``survivors`` differ in value and were accepted."""

    refused: int = 0
    equal: int = 0
    survivors: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Refused mutants among those that are wrong."""
        wrong = self.refused + len(self.survivors)
        return self.refused / wrong if wrong else 1.0


class MutationTest:
    """One formula with its code.

    Args:
        latex: the display.
        call: the ``code:`` line.
        symbols: its declarations.
        packages: where the function may live.
        library: formulas that it uses.
    """

    def __init__(
        self,
        latex: str,
        call: str,
        symbols: Iterable[str],
        *,
        packages: Sequence[str],
        library: Mapping[str, Definition],
    ) -> None:
        declarations = read_declarations(symbols)
        self.formula = read_formula(latex, declarations, *names(library))
        self.declarations = drawn_numbers(self.formula, declarations)
        self.call = call
        self.packages = packages
        self.library = library

    def of_formula(self) -> Score:
        """Changes the formula, a piece at a time."""
        score = Score()
        for mutant in mutants(self.formula):
            if not self._accepted(mutant.formula):
                score.refused += 1
            elif self._equal(mutant.formula):
                score.equal += 1
            else:
                score.survivors.append(mutant.change)
        return score

    def of_code(self) -> Score:
        """Changes the function that the block names, a piece at a time."""
        score = Score()
        call = read_call(self.call, self.packages, list(self.declarations))
        lines = reached_lines(call.function, lambda: self._accepted(self.formula))
        for mutant in code_mutants(call.function, lines):
            changed = replace(call, function=mutant.function)
            if self._accepted(self.formula, changed.run):
                score.survivors.append(mutant.change)
            else:
                score.refused += 1
        return score

    def _accepted(
        self, formula: Formula, run: Callable[[Mapping[str, object]], object] | None = None
    ) -> bool:
        try:
            code = Code(self.call, self.packages, self.declarations, formula)
            if run is not None:
                code.replace_call(run)
            drawn = draws(self.declarations, 25, 0)
            Checker(formula, self.declarations, code, self.library, drawn, ("cpu",)).run()
        except (FormulaError, NeedsReading, RecursionError):
            return False
        return True

    def _equal(self, formula: Formula) -> bool:
        """Whether an accepted mutant has the formula's value on other draws too."""
        for draw in draws(self.declarations, OTHER_DRAWS, 1):
            try:
                values = [
                    self._value(one, draw.tensors, draw.sizes) for one in (self.formula, formula)
                ]
            except (FormulaError, NeedsReading):
                return False
            if bool(values[0].isnan().any()):
                continue  # the formula itself has no value at these sizes
            if values[0].shape != values[1].shape or largest_error(*values) > 1e-9:
                return False
        return True

    def _value(
        self, formula: Formula, tensors: Mapping[str, torch.Tensor], sizes: Mapping[str, int]
    ) -> torch.Tensor:
        evaluator = Evaluator(formula, self.declarations, tensors, sizes, self.library)
        goal = target(formula)
        if goal.name is not None and goal.parameters is None:
            return evaluator.defined(goal.name).members()
        return evaluator.side(goal, 0).value.data
