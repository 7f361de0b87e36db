"""Early stopping: the plateau by hand."""

from __future__ import annotations

import math

import pytest

from flower_transformer.training.early_stopping import EarlyStopping


def test_stops_after_patience_evaluations_without_improvement() -> None:
    stopping = EarlyStopping(patience=2)
    answers = [(stopping.update(loss), stopping.should_stop) for loss in (3.0, 2.0, 2.5, 1.0, 1.0)]
    assert answers == [(True, False), (True, False), (False, False), (True, False), (False, False)]
    assert not stopping.update(1.5)
    assert stopping.should_stop
    assert stopping.best == 1.0


def test_an_improvement_must_reach_min_delta() -> None:
    stopping = EarlyStopping(patience=1, min_delta=0.5)
    assert stopping.update(2.0)
    assert not stopping.update(1.75)
    assert stopping.should_stop
    assert stopping.update(1.5)
    assert not stopping.should_stop


def test_scores_are_maximized() -> None:
    stopping = EarlyStopping(patience=1, maximize=True)
    assert stopping.update(0.0)
    assert stopping.update(0.5)
    assert not stopping.update(0.25)
    assert stopping.should_stop


def test_nan_is_no_improvement() -> None:
    stopping = EarlyStopping(patience=2)
    assert not stopping.update(math.nan)
    assert stopping.update(1.0)
    assert not stopping.update(math.nan)
    assert stopping.best == 1.0


def test_goes_on_from_its_state() -> None:
    stopping = EarlyStopping(patience=2)
    stopping.update(1.0)
    stopping.update(2.0)
    resumed = EarlyStopping(patience=2)
    resumed.load_state_dict(stopping.state_dict())
    assert not resumed.should_stop
    resumed.update(1.5)
    assert resumed.should_stop


def test_errors_name_the_values() -> None:
    with pytest.raises(ValueError, match=r"patience 0, min_delta 0\.0"):
        EarlyStopping(patience=0)
    with pytest.raises(ValueError, match=r"patience 1, min_delta -1"):
        EarlyStopping(patience=1, min_delta=-1)
