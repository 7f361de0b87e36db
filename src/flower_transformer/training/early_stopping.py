"""Stop when the evaluation no longer improves."""

from __future__ import annotations

import math


class EarlyStopping:
    """Counts evaluations without improvement, and says when there were too many.

    Attributes:
        best: the best value so far; infinity before the first one.
        n_worse: evaluations since then.
    """

    def __init__(self, *, patience: int, min_delta: float = 0.0, maximize: bool = False) -> None:
        """Set the limits.

        Args:
            patience: evaluations in a row without improvement after which to stop.
            min_delta: by how much a value must be better to count as an improvement.
            maximize: whether large values are good (accuracy, BLEU) rather than small ones (loss).

        Raises:
            ValueError: patience is below 1, or min_delta negative.
        """
        if patience < 1 or min_delta < 0:
            limits = f"patience {patience}, min_delta {min_delta}"
            raise ValueError(f"patience must be at least 1 and min_delta at least 0: {limits}")
        self.patience = patience
        self.min_delta = min_delta
        self.maximize = maximize
        self.best = -math.inf if maximize else math.inf
        self.n_worse = 0

    @property
    def should_stop(self) -> bool:
        """Whether the patience is used up."""
        return self.n_worse >= self.patience

    def update(self, value: float) -> bool:
        """Take in the value of an evaluation.

        Args:
            value: a loss or a score; NaN is never an improvement.

        Returns:
            Whether it is the best so far, by at least min_delta.
        """
        gain = value - self.best if self.maximize else self.best - value
        improved = gain > 0 and gain >= self.min_delta
        if improved:
            self.best = value
        self.n_worse = 0 if improved else self.n_worse + 1
        return improved

    def state_dict(self) -> dict[str, float]:
        """Return what a checkpoint must keep."""
        return {"best": self.best, "n_worse": self.n_worse}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Go on from a checkpoint."""
        self.best, self.n_worse = state["best"], int(state["n_worse"])
