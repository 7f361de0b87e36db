"""Real bug reports as tests: the cases of the library that the pitfalls do not name themselves.

O-09, O-10 and O-11 (mask polarity, empty rows, causal alignment) stand in
``test_pitfalls_attention.py``.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from flower_transformer.norms import layer_norm
from flower_transformer.rotary import interleaved_to_half_split, rotary_encoding
from flower_transformer.training.losses import cross_entropy, cross_entropy_over_others


def test_case_o_12_layer_norm_on_a_nearly_constant_row() -> None:
    x = torch.tensor([1.0, 0.0, 0.0, 0.0])
    torch.testing.assert_close(layer_norm(x, eps=0.0)[0].item(), 3**0.5, rtol=1e-6, atol=0.0)
    # here epsilon decides: the deviation plus epsilon would give 1.693
    nearly = torch.tensor([1e-3, 0.0, 0.0, 0.0])
    assert layer_norm(nearly, eps=1e-5)[0].item() == pytest.approx(0.235, abs=5e-4)
    torch.testing.assert_close(layer_norm(nearly, eps=1e-5), F.layer_norm(nearly, (4,), eps=1e-5))


@pytest.mark.parametrize("layout", ["interleaved", "half_split"])
def test_case_o_13_scores_depend_on_the_distance_alone(layout: str) -> None:
    q, k = torch.randn(2, 1, 4, dtype=torch.float64)

    def score(m: int, n: int) -> float:
        turned = [
            rotary_encoding(x, torch.tensor([place]), layout=layout)  # type: ignore[arg-type]
            for x, place in ((q, m), (k, n))
        ]
        return (turned[0] * turned[1]).sum().item()

    assert score(5, 2) == pytest.approx(score(8, 5))
    assert score(5, 2) != pytest.approx(score(5, 3))


def test_case_o_13_the_layouts_agree_only_after_the_permutation() -> None:
    x, place = torch.randn(1, 4, dtype=torch.float64), torch.tensor([5])
    pairs = rotary_encoding(x, place, layout="interleaved")
    halves = rotary_encoding(x, place, layout="half_split")
    assert not torch.allclose(pairs, halves)
    permuted = rotary_encoding(interleaved_to_half_split(x), place, layout="half_split")
    torch.testing.assert_close(interleaved_to_half_split(pairs), permuted)


def test_case_o_14_two_label_smoothings() -> None:
    logits, target = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([0])
    spread = cross_entropy(logits, target, epsilon=0.1)
    assert spread.item() == pytest.approx(0.5076, abs=5e-5)
    torch.testing.assert_close(spread, F.cross_entropy(logits, target, label_smoothing=0.1))
    others = cross_entropy_over_others(logits, target, epsilon=0.1)
    assert others.item() == pytest.approx(0.5576, abs=5e-5)
    # a probability of (nearly) 0 stays finite: the loss is computed from logits
    sure = cross_entropy(torch.tensor([[1e4, 0.0, 0.0]]), torch.tensor([1]), epsilon=0.1)
    assert torch.isfinite(sure)
