"""Scaled dot-product attention: values by hand, properties, and parity with torch's kernel."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from parity import normal

from flower_transformer.masks import additive_mask, causal_mask
from flower_transformer.scaled_dot_product import (
    attention_scores,
    attention_weights,
    masked_attention,
    masked_softmax,
    scaled_dot_product_attention,
)

PATHS = ("reference", "fused")
SIZES = st.integers(1, 5)
SEEDS = st.integers(0, 2**31)


def masks(n_query: int, n_key: int) -> dict[str, torch.Tensor | None]:
    """Every kind of mask for scores (2, 3, n_query, n_key); some have rows without a key."""
    generator = torch.Generator().manual_seed(7)
    random = torch.rand(2, 3, n_query, n_key, generator=generator) > 0.5
    random[0, 0, 0] = False
    padding = torch.arange(n_key) < torch.tensor([n_key, 1])[:, None]
    return {
        "none": None,
        "causal": causal_mask(n_query, n_key),
        "padding": padding[:, None, None, :],
        "padding and causal": padding[:, None, None, :] & causal_mask(n_query, n_key),
        "one row": torch.arange(n_key) != 1,
        "per query": torch.arange(n_query)[:, None] != 0,
        "random, per head": random,
        "nothing at all": torch.zeros(n_query, n_key, dtype=torch.bool),
        "all": torch.ones(n_query, n_key, dtype=torch.bool),
    }


# --- values by hand -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_two_keys_by_hand(path: str) -> None:
    # q = [0, sqrt 2], K = I: scores [0, sqrt 2] / sqrt 2 = [0, 1], weights [1, e] / (1 + e)
    query, key = torch.tensor([[0.0, math.sqrt(2)]]), torch.eye(2)
    output = scaled_dot_product_attention(query, key, torch.eye(2), path=path)
    expected = torch.tensor([[1.0, math.e]]) / (1 + math.e)
    torch.testing.assert_close(output, expected)


def test_scores_are_divided_by_the_root_of_the_width() -> None:
    assert attention_scores(torch.full((1, 4), 3.0), torch.full((1, 4), 2.0)).item() == 12.0
    assert attention_scores(torch.ones(1, 4), torch.ones(1, 4), scale=1.0).item() == 4.0


def test_softmax_runs_over_the_keys() -> None:
    scores = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]])
    torch.testing.assert_close(masked_softmax(scores), torch.tensor([[0.25, 0.75], [0.5, 0.5]]))


@pytest.mark.parametrize("path", PATHS)
def test_equal_keys_average_the_values(path: str) -> None:
    value = torch.tensor([[1.0], [2.0], [6.0]])
    output = scaled_dot_product_attention(torch.ones(2, 3), torch.ones(3, 3), value, path=path)
    torch.testing.assert_close(output, torch.tensor([[3.0], [3.0]]))


@pytest.mark.parametrize("path", PATHS)
def test_scale_replaces_the_root(path: str) -> None:
    query, key = torch.tensor([[math.log(3), 0.0]]), torch.eye(2)
    output = scaled_dot_product_attention(query, key, torch.eye(2), scale=1.0, path=path)
    torch.testing.assert_close(output, torch.tensor([[0.75, 0.25]]))


def test_weights_are_those_of_the_output() -> None:
    query, key = normal(2, 3, seed=1), normal(4, 3, seed=2)
    output, weights = scaled_dot_product_attention(
        query, key, torch.eye(4).double(), return_weights=True
    )
    torch.testing.assert_close(output, weights)
    torch.testing.assert_close(weights, attention_weights(query, key))


@pytest.mark.parametrize("path", PATHS)
def test_one_query_without_a_length(path: str) -> None:
    query, key, value = normal(3, seed=1), normal(4, 3, seed=2), normal(4, 2, seed=3)
    mask = torch.tensor([True, False, True, True])
    for may_attend in (None, mask, torch.zeros(4, dtype=torch.bool)):
        single = scaled_dot_product_attention(query, key, value, may_attend=may_attend, path=path)
        row = scaled_dot_product_attention(
            query[None], key, value, may_attend=may_attend, path=path
        )
        assert single.shape == (2,)
        torch.testing.assert_close(single, row[0])


# --- the two paths --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", masks(4, 6))
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_paths_agree(kind: str, dtype: torch.dtype, bound: float) -> None:
    results = []
    for path in PATHS:
        inputs = [normal(2, 3, n, d, seed=n + d, dtype=dtype) for n, d in ((4, 5), (6, 5), (6, 7))]
        for tensor in inputs:
            tensor.requires_grad_()
        may_attend = masks(4, 6)[kind]
        output = scaled_dot_product_attention(*inputs, may_attend=may_attend, path=path)
        gradients = torch.autograd.grad(output.square().sum(), inputs)
        results.append((output, *gradients))
    for reference, fused in zip(*results, strict=True):
        assert reference.isfinite().all()
        assert reference.dtype == dtype
        torch.testing.assert_close(fused, reference, rtol=bound, atol=bound)


@pytest.mark.parametrize("kind", masks(4, 6))
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_finite(kind: str, dtype: torch.dtype) -> None:
    query, key, value = (normal(2, 3, n, 8, seed=n) for n in (4, 6, 6))
    exact = scaled_dot_product_attention(query, key, value, may_attend=masks(4, 6)[kind])
    for path in PATHS:
        output = scaled_dot_product_attention(
            query.to(dtype), key.to(dtype), value.to(dtype), may_attend=masks(4, 6)[kind], path=path
        )
        assert output.dtype == dtype
        torch.testing.assert_close(output.double(), exact, rtol=0.05, atol=0.05)


def test_scores_of_float16_do_not_overflow_before_scaling() -> None:
    # q.k = 64 * 36^2 = 82944 is beyond float16, q.k / sqrt(64) = 10368 is not
    query = key = torch.full((1, 64), 36.0, dtype=torch.float16)
    assert attention_scores(query, key).item() == 10368


@pytest.mark.parametrize("path", PATHS)
def test_leading_axes_broadcast(path: str) -> None:
    query, key, value = normal(2, 1, 4, 5), normal(3, 6, 5), normal(1, 3, 6, 7)
    output = scaled_dot_product_attention(query, key, value, path=path)
    assert output.shape == (2, 3, 4, 7)
    one = scaled_dot_product_attention(query[1, 0], key[2], value[0, 2], path=path)
    torch.testing.assert_close(output[1, 2], one)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("may_attend", [None, torch.ones(3, 0, dtype=torch.bool)])
def test_no_key_at_all_gives_zero(path: str, may_attend: torch.Tensor | None) -> None:
    output = scaled_dot_product_attention(
        torch.ones(3, 2), torch.ones(0, 2), torch.ones(0, 4), may_attend=may_attend, path=path
    )
    assert output.tolist() == [[0.0] * 4] * 3


@pytest.mark.parametrize("path", PATHS)
def test_dropout_keeps_the_mean(path: str) -> None:
    torch.manual_seed(0)
    query, key, value = torch.zeros(2000, 1, 4), torch.zeros(8, 4), torch.ones(8, 1)
    output, weights = scaled_dot_product_attention(
        query, key, value, dropout_p=0.5, return_weights=True, path=path
    )
    assert 0.95 < output.mean() < 1.05
    assert output.std() > 0.2
    torch.testing.assert_close(weights, torch.full_like(weights, 1 / 8))  # before dropout


# --- properties -----------------------------------------------------------------------------------


@given(n_query=SIZES, n_key=SIZES, d_k=SIZES, d_v=SIZES, seed=SEEDS)
def test_rows_sum_to_one_or_are_zero(
    n_query: int, n_key: int, d_k: int, d_v: int, seed: int
) -> None:
    query, key = normal(n_query, d_k, seed=seed), normal(n_key, d_k, seed=seed + 1)
    value = normal(n_key, d_v, seed=seed + 2)
    may_attend = normal(n_query, n_key, seed=seed + 3) > 0
    weights = attention_weights(query, key, may_attend=may_attend)
    assert (weights >= 0).all()
    assert (weights[~may_attend] == 0).all()
    torch.testing.assert_close(weights.sum(dim=-1), may_attend.any(dim=-1).double())
    for path in PATHS:
        output = scaled_dot_product_attention(query, key, value, may_attend=may_attend, path=path)
        torch.testing.assert_close(output, weights @ value, rtol=1e-10, atol=1e-10)
        assert (output[~may_attend.any(dim=-1)] == 0).all()


@given(n_query=SIZES, n_key=SIZES, seed=SEEDS)
def test_order_of_the_keys_does_not_matter(n_query: int, n_key: int, seed: int) -> None:
    query, key = normal(n_query, 3, seed=seed), normal(n_key, 3, seed=seed + 1)
    value, order = normal(n_key, 2, seed=seed + 2), normal(n_key, seed=seed + 3).argsort()
    shuffled = scaled_dot_product_attention(query, key[order], value[order])
    torch.testing.assert_close(shuffled, scaled_dot_product_attention(query, key, value))


@given(n_key=SIZES, shift=st.floats(-50, 50), seed=SEEDS)
def test_a_shift_of_all_scores_changes_nothing(n_key: int, shift: float, seed: int) -> None:
    scores = normal(2, n_key, seed=seed)
    torch.testing.assert_close(masked_softmax(scores + shift), masked_softmax(scores))


@given(n_query=SIZES, n_key=SIZES, seed=SEEDS)
def test_additive_mask_equals_boolean(n_query: int, n_key: int, seed: int) -> None:
    query, key = normal(n_query, 3, seed=seed), normal(n_key, 3, seed=seed + 1)
    value = normal(n_key, 2, seed=seed + 2)
    may_attend = normal(n_query, n_key, seed=seed + 3) > 0
    boolean = scaled_dot_product_attention(query, key, value, may_attend=may_attend)
    additive = masked_attention(query, key, value, additive_mask(may_attend, query.dtype))
    torch.testing.assert_close(additive, boolean)


def test_finite_entries_of_an_additive_mask_are_a_bias() -> None:
    query, key = torch.zeros(1, 2), torch.zeros(3, 2)
    bias = torch.tensor([[math.log(3), 0.0, -math.inf]])
    output = masked_attention(query, key, torch.eye(3), bias)
    torch.testing.assert_close(output, torch.tensor([[0.75, 0.25, 0.0]]))


# --- a bias on the scores -------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_bias_by_hand(path: str) -> None:
    bias = torch.tensor([math.log(3), 0.0])  # weights 3 : 1
    output = scaled_dot_product_attention(
        torch.zeros(1, 2), torch.zeros(2, 2), torch.eye(2), score_bias=bias, path=path
    )
    torch.testing.assert_close(output, torch.tensor([[0.75, 0.25]]))


@pytest.mark.parametrize("kind", masks(4, 6))
@pytest.mark.parametrize("shape", [(6,), (4, 6), (3, 4, 6), (2, 1, 4, 6), (3, 1, 1)])
def test_paths_agree_about_a_bias(kind: str, shape: tuple[int, ...]) -> None:
    results = []
    for path in PATHS:
        inputs = [normal(2, 3, n, d, seed=n + d) for n, d in ((4, 5), (6, 5), (6, 7))]
        inputs.append(normal(*shape, seed=5))
        for tensor in inputs:
            tensor.requires_grad_()
        output, weights = scaled_dot_product_attention(
            *inputs[:3],
            may_attend=masks(4, 6)[kind],
            score_bias=inputs[3],
            return_weights=True,
            path=path,
        )
        gradients = torch.autograd.grad(output.square().sum(), inputs)
        results.append((output, weights, *gradients))
    for reference, fused in zip(*results, strict=True):
        assert reference.isfinite().all()
        torch.testing.assert_close(fused, reference, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_bias_is_taken_in_the_dtype_of_the_inputs(path: str, dtype: torch.dtype) -> None:
    query, key, value = (normal(3, 4, seed=seed, dtype=dtype) for seed in range(3))
    output, weights = scaled_dot_product_attention(
        query, key, value, score_bias=torch.ones(3, 3), return_weights=True, path=path
    )
    assert output.dtype == weights.dtype == dtype
    plain = scaled_dot_product_attention(query, key, value, path=path)
    torch.testing.assert_close(output, plain, rtol=0.02, atol=0.02)


def test_parity_with_torch() -> None:
    query, key, value = normal(2, 3, 4, 5), normal(2, 3, 4, 5, seed=1), normal(2, 3, 4, 7, seed=2)
    for causal in (False, True):
        may_attend = causal_mask(4) if causal else None
        ours = scaled_dot_product_attention(query, key, value, may_attend=may_attend)
        theirs = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_gradient_matches_finite_differences() -> None:
    inputs = [normal(3, 4, seed=s).requires_grad_() for s in range(3)]
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    for path in PATHS:
        assert torch.autograd.gradcheck(
            lambda q, k, v, path=path: scaled_dot_product_attention(
                q, k, v, may_attend=mask, path=path
            ),
            inputs,
        )


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((2, 3), (4, 5), (4, 6)), {}, "query has width 3, key has width 5"),
        (((2, 3), (4, 3), (5, 6)), {}, "key has length 4, value has length 5"),
        (((2, 3), (3,), (5, 6)), {}, r"key needs a length and a width axis, got \(3,\)"),
        (((3,), (2, 4, 3), (4, 6)), {}, r"query \(3,\), key \(2, 4, 3\)"),
        (
            ((2, 3), (4, 3), (4, 6)),
            {"may_attend": torch.ones(2, 5, dtype=torch.bool)},
            r"may_attend \(2, 5\) does not broadcast to the scores \(2, 4\)",
        ),
        (
            ((2, 3), (4, 3), (4, 6)),
            {"may_attend": torch.ones(7, 2, 4, dtype=torch.bool)},
            r"may_attend \(7, 2, 4\) does not broadcast to the scores \(2, 4\)",
        ),
        (
            ((2, 3), (4, 3), (4, 6)),
            {"may_attend": torch.ones(2, 4)},
            "must be boolean .* got torch.float32",
        ),
        (
            ((2, 3), (4, 3), (4, 6)),
            {"score_bias": torch.ones(2, 5)},
            r"score_bias \(2, 5\) does not broadcast to the scores \(2, 4\)",
        ),
        (
            ((2, 3), (4, 3), (4, 6)),
            {"score_bias": torch.ones(2, 4, dtype=torch.bool)},
            r"score_bias must be floating, got torch\.bool",
        ),
        (((2, 3), (4, 3), (4, 6)), {"dropout_p": 1.0}, r"dropout_p must lie in \[0, 1\), got 1.0"),
        (((2, 3), (4, 3), (4, 6)), {"path": "flash"}, "'reference' or 'fused', got 'flash'"),
    ],
)
def test_errors_name_both_values(
    shapes: tuple[tuple[int, ...], ...], options: dict[str, object], message: str
) -> None:
    query, key, value = (torch.zeros(shape) for shape in shapes)
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(query, key, value, **options)


def test_additive_mask_must_be_floating() -> None:
    q = torch.zeros(2, 3)
    with pytest.raises(ValueError, match=r"must be floating, got torch.bool"):
        masked_attention(q, q, q, torch.ones(2, 2, dtype=torch.bool))
