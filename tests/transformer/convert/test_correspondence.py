"""The rules of a correspondence: nothing is left out, nothing is copied unless everything fits."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from flower_transformer.convert.correspondence import (
    Correspondence,
    Match,
    export_weights,
    import_weights,
    same_names,
)


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor([[1.0, 2.0]]))
        self.b = nn.Parameter(torch.tensor([[3.0, 4.0], [5.0, 6.0]]))


BOTH = Correspondence(
    (Match("ab", ("a", "b"), transposed=True),), aliases={"tied": "ab"}, ignored=(".mask",)
)


def test_stacked_and_transposed_by_hand() -> None:
    state = export_weights(Pair(), BOTH)
    assert state["ab"].tolist() == [[1, 3, 5], [2, 4, 6]]
    assert set(state) == {"ab", "tied"}
    model = Pair()
    theirs = torch.arange(6.0).reshape(2, 3)
    import_weights(model, {"ab": theirs, "x.mask": torch.ones(3)}, BOTH)
    assert model.a.tolist() == [[0, 3]]
    assert model.b.tolist() == [[1, 4], [2, 5]]


def test_an_extra_axis_by_hand() -> None:
    correspondence = Correspondence(
        (Match("a", ("a",), extra_axis=True), Match("b", ("b",), transposed=True))
    )
    state = export_weights(Pair(), correspondence)
    assert state["a"].tolist() == [[[1, 2]]]
    model = Pair()
    import_weights(model, {"a": state["a"] + 1, "b": state["b"] + 1}, correspondence)
    assert model.a.tolist() == [[2, 3]]
    assert model.b.tolist() == [[4, 5], [6, 7]]


def test_copies_share_no_memory() -> None:
    model = Pair()
    state = export_weights(model, Correspondence((Match("a", ("a",)), Match("b", ("b",)))))
    state["a"].zero_()
    assert model.a.tolist() == [[1, 2]]


def test_dtype_of_ours_stays() -> None:
    model = Pair().double()
    import_weights(model, {"ab": torch.ones(2, 3, dtype=torch.bfloat16)}, BOTH)
    assert model.a.dtype == torch.float64


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "their weights lack ab"),
        ({"ab": torch.ones(2, 3), "c": torch.ones(1)}, "their weights have unknown c"),
        ({"ab": torch.ones(3, 2)}, r"ab has shape \(3, 2\), expected \(2, 3\)"),
        (
            {"ab": torch.ones(2, 3), "tied": torch.zeros(2, 3)},
            "tied and ab are to be one weight, but differ",
        ),
    ],
)
def test_their_faults_are_named(state: dict[str, torch.Tensor], message: str) -> None:
    model = Pair()
    with pytest.raises(ValueError, match=message):
        import_weights(model, state, BOTH)
    assert model.a.tolist() == [[1, 2]]  # untouched


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "nothing corresponds to our b"),
        (["a", "b", "c"], "our model lacks c"),
        (["a", "b", "a"], "matched more than once: a"),
    ],
)
def test_our_faults_are_named(names: list[str], message: str) -> None:
    matches = tuple(Match(f"{i}", (name,)) for i, name in enumerate(names))
    with pytest.raises(ValueError, match=message):
        export_weights(Pair(), Correspondence(matches))


def test_same_names() -> None:
    assert same_names("x", "y", ["weight"]) == [Match("y.weight", ("x.weight",))]
    assert [match.theirs for match in same_names("x", "y")] == ["y.weight", "y.bias"]
