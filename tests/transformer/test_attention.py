"""Multi-head attention: the Module, the published formula and torch's own module agree."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parity import GrowingCache, normal
from torch import nn

from flower_transformer.attention import (
    MultiHeadAttention,
    merge_heads,
    multi_head_attention,
    scaled_dot_product_attention,
    split_heads,
)
from flower_transformer.masks import causal_mask, padding_mask
from flower_transformer.relative_bias import ALiBi
from flower_transformer.rotary import RotaryEmbedding

PATHS = ("reference", "fused")


def layer(*args: int, **options: object) -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(*args, **options).double()


# --- heads ----------------------------------------------------------------------------------------


def test_heads_are_neighbouring_columns() -> None:
    x = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    assert split_heads(x, 2).tolist() == [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]
    assert merge_heads(split_heads(x, 2)).tolist() == x.tolist()


@given(
    batch=st.integers(0, 3),
    length=st.integers(0, 3),
    n_heads=st.integers(1, 4),
    width=st.integers(1, 3),
)
def test_merge_undoes_split(batch: int, length: int, n_heads: int, width: int) -> None:
    x = normal(batch, length, n_heads * width)
    assert split_heads(x, n_heads).shape == (batch, n_heads, length, width)
    assert torch.equal(merge_heads(split_heads(x, n_heads)), x)


# --- the published formula ------------------------------------------------------------------------


def test_one_head_with_unit_matrices_is_plain_attention() -> None:
    x, eye = normal(5, 4), torch.eye(4, dtype=torch.float64)
    output = multi_head_attention(x, x, x, eye[None], eye[None], eye[None], eye)
    torch.testing.assert_close(output, scaled_dot_product_attention(x, x, x))


def test_formula_head_by_head() -> None:
    query, key, value = normal(2, 3, 6), normal(2, 5, 6, seed=1), normal(2, 5, 6, seed=2)
    w_query, w_key, w_value = normal(3, 6, 2, seed=3), normal(3, 6, 2, seed=4), normal(3, 6, 4)
    w_output = normal(12, 6, seed=5)
    heads = [
        scaled_dot_product_attention(query @ w_query[i], key @ w_key[i], value @ w_value[i])
        for i in range(3)
    ]
    expected = torch.cat(heads, dim=-1) @ w_output
    output, weights = multi_head_attention(
        query, key, value, w_query, w_key, w_value, w_output, return_weights=True
    )
    torch.testing.assert_close(output, expected)
    assert weights.shape == (2, 3, 3, 5)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 3, 3, dtype=torch.float64))


def test_errors_of_the_formula_name_both_values() -> None:
    x, w = normal(2, 4), normal(2, 4, 3)
    with pytest.raises(ValueError, match="w_query 3, w_key 2, w_value 2"):
        multi_head_attention(x, x, x, normal(3, 4, 3), w, w, normal(6, 4))
    with pytest.raises(ValueError, match="w_output has 5 rows, the heads give 6 columns"):
        multi_head_attention(x, x, x, w, w, w, normal(5, 4))


# --- the Module -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("widths", [{}, {"d_k": 3, "d_v": 5}])
def test_module_equals_formula(path: str, widths: dict[str, int]) -> None:
    module = layer(12, 4, path=path, **widths)
    query, memory = normal(2, 3, 12), normal(2, 5, 12, seed=1)
    may_attend = normal(2, 1, 3, 5, seed=2) > -0.5
    ours, weights = module(query, memory, may_attend=may_attend, return_weights=True)
    formula, formula_weights = multi_head_attention(
        query, memory, memory, *module.head_weights(), may_attend=may_attend, return_weights=True
    )
    torch.testing.assert_close(ours, formula)
    torch.testing.assert_close(weights, formula_weights)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
def test_shared_key_heads_equal_the_formula_with_repeated_matrices(
    path: str, n_kv_heads: int
) -> None:
    module = layer(12, 4, n_kv_heads=n_kv_heads, path=path)
    assert module.project_key.weight.shape == (3 * n_kv_heads, 12)
    x = normal(2, 5, 12)
    ours, weights = module(x, causal=True, return_weights=True)
    formula, formula_weights = multi_head_attention(
        x, x, x, *module.head_weights(), may_attend=causal_mask(5), return_weights=True
    )
    torch.testing.assert_close(ours, formula)
    torch.testing.assert_close(weights, formula_weights)


def test_rotation_turns_queries_and_keys() -> None:
    module, rotary = layer(8, 2, n_kv_heads=1), RotaryEmbedding(4, layout="half_split")
    x = normal(2, 5, 8)
    output, weights = module(x, rotation=rotary(torch.arange(5)), return_weights=True)
    assert not torch.allclose(output, module(x))
    # only distances matter
    later = module(x, rotation=rotary(torch.arange(100, 105)), return_weights=True)
    torch.testing.assert_close(later[1], weights, rtol=1e-5, atol=1e-5)
    each = torch.stack((torch.arange(5), torch.arange(7, 12)))
    torch.testing.assert_close(
        module(x, rotation=rotary(each)), output, rtol=1e-5, atol=1e-5
    )  # (B, T)
    torch.testing.assert_close(module(x[0], rotation=rotary(torch.arange(5))), output[0])


@pytest.mark.parametrize("path", PATHS)
def test_score_bias_reaches_scores_and_weights(path: str) -> None:
    module, x = layer(8, 2, path=path), normal(2, 5, 8)
    bias = ALiBi(2).double()(torch.arange(5), torch.arange(5))
    output, weights = module(x, causal=True, score_bias=bias, return_weights=True)
    torch.testing.assert_close(output, module(x, causal=True, score_bias=bias))
    assert not torch.allclose(output, module(x, causal=True))
    _, plain = module(x, causal=True, return_weights=True)
    expected = plain * bias.exp()
    torch.testing.assert_close(weights, expected / expected.sum(dim=-1, keepdim=True))


@pytest.mark.parametrize("split", [(1, 5), (3, 3), (1, 1, 1, 1, 1, 1)])
@pytest.mark.parametrize("n_kv_heads", [1, 2])
@pytest.mark.parametrize("position", ["none", "rotary", "alibi"])
def test_a_cache_changes_nothing(split: tuple[int, ...], n_kv_heads: int, position: str) -> None:
    module, x = layer(8, 2, n_kv_heads=n_kv_heads), normal(2, 6, 8)
    real = torch.tensor([[False, True, True, True, True, True], [True] * 6])
    rotary, alibi = RotaryEmbedding(4, layout="interleaved"), ALiBi(2).double()
    positions = torch.arange(6)

    def options(start: int, stop: int) -> dict[str, object]:
        if position == "rotary":
            return {"rotation": rotary(positions[start:stop])}
        if position == "alibi":
            return {"score_bias": alibi(positions[start:stop], positions[:stop])}
        return {}

    full = module(x, causal=True, key_padding_mask=real, **options(0, 6))
    cache, steps, start = GrowingCache(), [], 0
    for length in split:
        stop = start + length
        steps.append(
            module(
                x[:, start:stop],
                causal=True,
                key_padding_mask=real[:, :stop],
                cache=cache,
                **options(start, stop),
            )
        )
        start = stop
    torch.testing.assert_close(torch.cat(steps, dim=1), full, rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match=r"got \(2, 6\), key \(2, 7, 8\)"):
        module(x[:, :1], key_padding_mask=real, cache=cache)


def test_gradients_reach_every_weight_through_both() -> None:
    module, x = layer(12, 4), normal(2, 3, 12)
    by_module = torch.autograd.grad(module(x).square().sum(), module.parameters())
    formula = multi_head_attention(x, x, x, *module.head_weights())
    by_formula = torch.autograd.grad(formula.square().sum(), module.parameters())
    for ours, theirs in zip(by_module, by_formula, strict=True):
        torch.testing.assert_close(ours, theirs)
        assert ours.abs().max() > 0


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("mask", ["none", "causal", "padding", "both"])
def test_parity_with_torch(bias: bool, path: str, mask: str) -> None:
    ours = layer(12, 3, bias=bias, path=path)
    theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True, dtype=torch.float64)
    projections = (ours.project_query, ours.project_key, ours.project_value)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.copy_(normal(*parameter.shape, seed=parameter.numel()))
        theirs.in_proj_weight.copy_(torch.cat([layer.weight for layer in projections]))
        theirs.out_proj.weight.copy_(ours.project_output.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([layer.bias for layer in projections]))
            theirs.out_proj.bias.copy_(ours.project_output.bias)
    x = normal(2, 5, 12)
    real = padding_mask(torch.tensor([5, 3]), 5) if mask in ("padding", "both") else None
    causal = mask in ("causal", "both")
    output, weights = ours(x, causal=causal, key_padding_mask=real, return_weights=True)
    # torch's masks say True = may NOT attend
    expected, expected_weights = theirs(
        x,
        x,
        x,
        attn_mask=~causal_mask(5) if causal else None,
        key_padding_mask=None if real is None else ~real,
        average_attn_weights=False,
    )
    torch.testing.assert_close(output, expected, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(weights, expected_weights, rtol=1e-10, atol=1e-10)


def test_self_and_cross_attention() -> None:
    module, x, memory = layer(8, 2), normal(2, 3, 8), normal(2, 5, 8, seed=1)
    torch.testing.assert_close(module(x), module(x, x, x))
    torch.testing.assert_close(module(x, memory), module(x, memory, memory))
    assert module(x, memory).shape == (2, 3, 8)
    assert not torch.allclose(module(x, memory), module(x, memory, 2 * memory))


def test_works_without_a_batch() -> None:
    module, x = layer(8, 2), normal(2, 4, 8)
    real = padding_mask(torch.tensor([4, 2]), 4)
    both = module(x, causal=True, key_padding_mask=real)
    for i in range(2):
        single = module(x[i], causal=True, key_padding_mask=real[i])
        torch.testing.assert_close(single, both[i])


def test_padded_batch_equals_unpadded() -> None:
    module, lengths = layer(8, 2), [2, 4, 3]
    sentences = [normal(n, 8, seed=n) for n in lengths]
    padded = torch.full((3, 5, 8), 1e3, dtype=torch.float64)
    for row, sentence in zip(padded, sentences, strict=True):
        row[: len(sentence)] = sentence
    together = module(padded, key_padding_mask=padding_mask(torch.tensor(lengths), 5))
    for row, sentence in zip(together, sentences, strict=True):
        torch.testing.assert_close(row[: len(sentence)], module(sentence))


def test_decoding_step_by_step_equals_one_pass() -> None:
    module, x = layer(8, 2), normal(1, 6, 8)
    full = module(x, causal=True)
    for t in range(1, 7):
        step = module(x[:, t - 1 : t], x[:, :t], causal=True)
        torch.testing.assert_close(step, full[:, t - 1 : t])


def test_parameters() -> None:
    assert sum(p.numel() for p in MultiHeadAttention(64, 8).parameters()) == 4 * 64**2
    assert sum(p.numel() for p in MultiHeadAttention(64, 1).parameters()) == 4 * 64**2
    with_bias = MultiHeadAttention(64, 8, bias=True).parameters()
    assert sum(p.numel() for p in with_bias) == 4 * (64**2 + 64)


def test_state_survives_saving_and_moving() -> None:
    module, x = layer(8, 2), normal(2, 3, 8)
    other = MultiHeadAttention(8, 2)
    other.load_state_dict(module.state_dict())
    torch.testing.assert_close(other.double()(x), module(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d_model": 10, "n_heads": 3}, "d_model 10 is not divisible by n_heads 3"),
        ({"d_model": 8, "n_heads": 0}, "d_model 8, n_heads 0"),
        ({"d_model": 8, "n_heads": 4, "n_kv_heads": 3}, "n_heads 4 .* by n_kv_heads 3"),
        ({"d_model": 8, "n_heads": 4, "n_kv_heads": 0}, "n_heads 4, n_kv_heads 0"),
        ({"d_model": 8, "n_heads": 2, "d_k": 0}, "d_k 0, d_v 0"),
        ({"d_model": 8, "n_heads": 2, "dropout_p": 1.5}, "got 1.5"),
    ],
)
def test_constructor_errors_name_both_values(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(**arguments)


def test_errors_name_both_values() -> None:
    with pytest.raises(ValueError, match="width 10 is not divisible by n_heads 3"):
        split_heads(torch.zeros(2, 10), 3)
    with pytest.raises(ValueError, match=r"got \(2, 4\), key \(2, 3, 8\)"):
        layer(8, 2)(normal(2, 3, 8), key_padding_mask=torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="must be boolean"):
        layer(8, 2)(normal(2, 3, 8), key_padding_mask=torch.ones(2, 3))
