"""Known ways to get attention and its masks wrong, each reported against a public project.

The number in a test's name is its row in the project's list of pitfalls.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from parity import normal

from flower_transformer.attention import MultiHeadAttention, scaled_dot_product_attention
from flower_transformer.grouped_query import grouped_query_attention
from flower_transformer.masks import additive_mask, causal_mask, combine, window_mask
from flower_transformer.scaled_dot_product import attention_weights, masked_attention

PATHS = ("reference", "fused")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_pitfall_01_row_with_every_key_masked_is_zero(path: str, return_weights: bool) -> None:
    """pytorch #103749, #41508: NaN forward and in the gradient."""
    inputs = [normal(2, 3, seed=seed).requires_grad_() for seed in range(3)]
    may_attend = torch.tensor([[True, False], [False, False]])
    result = scaled_dot_product_attention(
        *inputs, may_attend=may_attend, path=path, return_weights=return_weights
    )
    if return_weights:
        output, weights = result
        assert weights.tolist() == [[1, 0], [0, 0]]
        loss = output.square().sum() + weights.square().sum()
    else:
        output = result
        loss = output.square().sum()
    assert output[1].tolist() == [0, 0, 0]
    torch.testing.assert_close(output[0], inputs[2][0])
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        query, key, value = torch.autograd.grad(loss, inputs)
    for gradient in (query, key, value):
        assert gradient.isfinite().all()
    assert query[1].tolist() == [0, 0, 0]
    assert value[1].tolist() == [0, 0, 0]


def test_pitfall_01_kernels_never_see_such_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """They differ in what they make of it, by device and precision; so none is given one."""
    seen: list[torch.Tensor] = []

    def kernel(query: torch.Tensor, *rest: torch.Tensor, **options: float) -> torch.Tensor:
        seen.append(rest[2])
        return torch.full_like(query, math.inf)  # whatever it makes of the row is not used

    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    may_attend = torch.tensor([[True, False], [False, False]])
    x = normal(2, 3)
    output = scaled_dot_product_attention(x, x, x, may_attend=may_attend, path="fused")
    assert seen[0].any(dim=-1).all()
    assert seen[0][0].tolist() == [True, False]
    assert output[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_02_asking_for_weights_changes_nothing(path: str) -> None:
    """pytorch #160064."""
    module = MultiHeadAttention(8, 2, path=path).double()
    x = normal(2, 4, 8)
    real = torch.tensor([[True] * 4, [False] * 4])  # the second sequence is all padding
    plain = module(x, key_padding_mask=real)
    with_weights, weights = module(x, key_padding_mask=real, return_weights=True)
    assert torch.equal(plain, with_weights)
    assert (plain[1] == 0).all()
    assert (weights[1] == 0).all()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_pitfall_03_masking_works_in_every_precision(path: str, dtype: torch.dtype) -> None:
    """fairseq #3575, apex #1105: -1e9 overflows float16."""
    query, key, value = (normal(3, 4, seed=seed).to(dtype) for seed in range(3))
    may_attend = torch.tensor([[True, False, False], [True, True, False], [False] * 3])
    output = scaled_dot_product_attention(query, key, value, may_attend=may_attend, path=path)
    assert output.dtype == dtype
    assert output.isfinite().all()
    torch.testing.assert_close(output[0], value[0])  # only the first key is seen
    assert (output[2] == 0).all()
    additive = masked_attention(query, key, value, additive_mask(may_attend, dtype))
    assert torch.equal(additive[2], output[2])
    torch.testing.assert_close(additive, output, rtol=0.02, atol=0.02)


def test_pitfall_04_masks_are_combined_as_booleans() -> None:
    """Two additive masks of finfo.min add up to -inf, and the row to NaN."""
    lowest = torch.full((1, 2), torch.finfo(torch.float32).min)
    assert (lowest + lowest).softmax(dim=-1).isnan().all()  # the fault itself
    blocked = torch.zeros(1, 2, dtype=torch.bool)
    weights = attention_weights(
        torch.ones(1, 3), torch.ones(2, 3), may_attend=combine(blocked, blocked)
    )
    assert weights.tolist() == [[0, 0]]


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_05_true_means_may_attend_everywhere(path: str) -> None:
    """rasbt/LLMs-from-scratch PR #1062, pytorch PR #170415: mask polarity mixed up."""
    module = MultiHeadAttention(8, 2, path=path).double()
    x = normal(1, 6, 8)
    for t in range(6):
        changed = x.clone()
        changed[:, t] += 1
        for options in ({"causal": True}, {"may_attend": causal_mask(6)}):
            before, after = module(x, **options), module(changed, **options)
            assert torch.equal(before[:, :t], after[:, :t])
            assert (before[:, t:] != after[:, t:]).any(dim=-1).all()
    # the three ways to hide the last token are one
    real = torch.tensor([[True] * 5 + [False]])
    hidden = module(x[:, :3], x[:, :5])
    torch.testing.assert_close(module(x[:, :3], x, key_padding_mask=real), hidden)
    torch.testing.assert_close(module(x[:, :3], x, may_attend=real), hidden)


def test_pitfall_06_boolean_mask_is_not_added() -> None:
    """litgpt #1672: weights [.5761, .2119, .2119] instead of [1, 0, 0]."""
    may_attend = torch.tensor([[True, False, False]])
    weights = attention_weights(torch.zeros(1, 2), torch.zeros(3, 2), may_attend=may_attend)
    assert weights.tolist() == [[1, 0, 0]]
    with pytest.raises(ValueError, match=r"must be boolean .* got torch.float32"):
        attention_weights(torch.zeros(1, 2), torch.zeros(3, 2), may_attend=may_attend.float())
    with pytest.raises(ValueError, match=r"must be floating, got torch\.bool"):
        masked_attention(torch.zeros(1, 2), torch.zeros(3, 2), torch.zeros(3, 2), may_attend)


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_07_causal_mask_is_aligned_with_the_last_key(path: str) -> None:
    """pytorch #108108, flash-attention #517."""
    rows = scaled_dot_product_attention(
        torch.zeros(2, 3), torch.zeros(5, 3), torch.eye(5), may_attend=causal_mask(2, 5), path=path
    )
    torch.testing.assert_close(rows, torch.tensor([[0.25] * 4 + [0.0], [0.2] * 5]))


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_pitfall_08_nan_in_padding_does_not_spread(path: str, return_weights: bool) -> None:
    """pytorch #101967."""
    query, key, value = (normal(3, 4, seed=seed) for seed in range(3))
    expected = scaled_dot_product_attention(query, key[:2], value[:2])
    key[2], value[2] = math.nan, math.nan
    inputs = [tensor.requires_grad_() for tensor in (query, key, value)]
    real = torch.tensor([True, True, False])
    result = scaled_dot_product_attention(
        *inputs, may_attend=real, path=path, return_weights=return_weights
    )
    output = result[0] if return_weights else result
    torch.testing.assert_close(output, expected)
    loss = output.sum() + (result[1].sum() if return_weights else 0)
    for gradient in torch.autograd.grad(loss, inputs):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_08_limit_a_key_that_some_query_sees_must_be_finite(path: str) -> None:
    """The documented limit: 0 * NaN = NaN where one query may attend and another may not."""
    value = torch.tensor([[1.0], [math.nan]])
    output = scaled_dot_product_attention(
        torch.zeros(2, 2), torch.zeros(2, 2), value, may_attend=causal_mask(2), path=path
    )
    assert output.isnan().all()


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_09_no_dropout_in_evaluation(path: str) -> None:
    """pytorch #124464, timm PR #1978, torchtune #1791."""
    module = MultiHeadAttention(4, 1, dropout_p=0.5, path=path)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.eye(4))
    ones = torch.ones(1, 4, 4)
    module.eval()
    for _ in range(5):
        assert module(ones).tolist() == ones.tolist()
    module.train()
    torch.manual_seed(0)
    assert not torch.equal(module(ones), ones)


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_16_sliding_window_counts_the_token_itself(path: str) -> None:
    """litgpt #2182, transformers #37574."""
    mask = window_mask(4, window=2)
    assert mask.int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    module, x = MultiHeadAttention(8, 2, path=path).double(), normal(1, 4, 8)
    output = module(x, may_attend=mask)  # a prompt longer than the window
    for t in range(4):
        window = x[:, max(0, t - 1) : t + 1]
        torch.testing.assert_close(output[:, t : t + 1], module(x[:, t : t + 1], window))


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_17_query_heads_share_keys_in_order(path: str) -> None:
    """onnx PR #7274."""
    value = torch.tensor([[[0.0]], [[1.0]]])  # each key head says which it is
    heads = grouped_query_attention(torch.zeros(4, 1, 2), torch.zeros(2, 1, 2), value, path=path)
    assert heads.flatten().tolist() == [0, 0, 1, 1]
    query, key, value = normal(1, 4, 3, 2), normal(1, 2, 5, 2, seed=1), normal(1, 2, 5, 2, seed=2)
    torch.testing.assert_close(
        grouped_query_attention(query, key, value, path=path),
        F.scaled_dot_product_attention(query, key, value, enable_gqa=True),
    )


@pytest.mark.parametrize("path", PATHS)
def test_case_o_09_the_blocked_mask_must_be_negated(path: str) -> None:
    """pytorch #109072: triu(1) means "blocked" to one function and "may attend" to another."""
    query, key, eye = normal(3, 4), normal(3, 4, seed=1), torch.eye(3, dtype=torch.float64)
    blocked = torch.ones(3, 3).triu(1) == 1
    rows = scaled_dot_product_attention(query, key, eye, may_attend=~blocked, path=path)
    assert rows[0].tolist() == [1, 0, 0]
    torch.testing.assert_close(
        rows, scaled_dot_product_attention(query, key, eye, may_attend=causal_mask(3), path=path)
    )


@pytest.mark.parametrize("path", PATHS)
def test_case_o_10_an_empty_row_is_zero(path: str) -> None:
    """pytorch #24816, #26098, #103963: NaN, zeros or a uniform average, depending on the path."""
    may_attend = torch.ones(3, 3, dtype=torch.bool)
    may_attend[1] = False
    x = normal(3, 4).requires_grad_()
    output = scaled_dot_product_attention(x, x, x, may_attend=may_attend, path=path)
    assert output[1].tolist() == [0] * 4
    assert torch.autograd.grad(output.sum(), x)[0].isfinite().all()


@pytest.mark.parametrize("path", PATHS)
def test_case_o_11_one_query_sees_all_earlier_keys(path: str) -> None:
    """pytorch #108108, executorch #22426: a mask anchored at the top left sees the oldest only."""
    rows = scaled_dot_product_attention(
        torch.zeros(1, 2), torch.zeros(5, 2), torch.eye(5), may_attend=causal_mask(1, 5), path=path
    )
    torch.testing.assert_close(rows, torch.full((1, 5), 0.2))
