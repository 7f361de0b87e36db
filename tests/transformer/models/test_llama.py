"""Llama: published sizes, shared heads in the cache, the window, precisions."""

from __future__ import annotations

import pytest
import torch
from small_models import V, small_llama

from flower_transformer.models.llama import Llama, LlamaConfig
from flower_transformer.rotary import Llama3Scaling


def tokens(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def test_published_sizes() -> None:
    assert LlamaConfig.llama2_7b().n_kv_heads == 32
    assert LlamaConfig.llama3_8b().rotary_base == 500000
    assert LlamaConfig.llama3_2_1b().rotary_scaling == Llama3Scaling(32.0)
    assert LlamaConfig.mistral_7b().window == 4096


@torch.no_grad()
def test_no_token_sees_a_later_one_or_beyond_the_windows() -> None:
    model, text = small_llama(window=2), tokens(1, 8)
    before = model(text)
    for t in range(8):
        changed = text.clone()
        changed[:, t] = (text[:, t] + 1) % V
        differs = (model(changed) != before).any(dim=-1)[0]
        assert differs.tolist() == [t <= i <= t + 2 for i in range(8)]  # 2 layers, 1 back in each


@torch.no_grad()
def test_the_cache_holds_the_shared_heads_only_and_forgets() -> None:
    model = small_llama(window=3)
    caches = model.make_caches()
    keys, _ = caches[0].update(torch.zeros(1, 2, 7, 4), torch.zeros(1, 2, 7, 4))
    assert keys.shape == (1, 2, 7, 4)
    caches = model.make_caches()
    model(tokens(1, 7), caches=caches)
    assert [(cache.n_seen, cache.n_kept) for cache in caches] == [(7, 2)] * 2


@pytest.mark.parametrize("tied", [False, True])
def test_output(tied: bool) -> None:
    model = small_llama(tied=tied)
    assert (model.output is None) == tied
    x = torch.randn(1, 16)
    weight = model.token_embedding.weight if model.output is None else model.output.weight
    assert weight.shape == (V, 16)
    gradient = torch.autograd.grad((x @ weight.T).sum(), weight)[0]
    assert gradient.abs().sum() > 0


@torch.no_grad()
def test_first_weights() -> None:
    torch.manual_seed(0)
    model = Llama(LlamaConfig(100, 128, 2, 4, 2, 200))
    for name, weight in model.named_parameters():
        if "norm" in name:
            assert (weight == 1).all()
        else:
            assert float(weight.std()) == pytest.approx(0.02, rel=0.05)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("window", [None, 2])
def test_halves(dtype: torch.dtype, window: int | None) -> None:
    model, text = small_llama(window=window), tokens(2, 5)
    mask = torch.tensor([[False, False, True, True, True], [True] * 5])
    expected = model(text, padding_mask=mask)[mask]
    logits = model.to(dtype)(text, padding_mask=mask)
    assert logits.dtype == dtype
    assert logits.isfinite().all()
    torch.testing.assert_close(logits[mask].float(), expected, rtol=0.1, atol=0.2)
