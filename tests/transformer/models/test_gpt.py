"""GPT: published sizes, what its output depends on, its first weights, precisions."""

from __future__ import annotations

import pytest
import torch
from small_models import V, small_gpt

from flower_transformer.cache import StaticCache, make_caches
from flower_transformer.models.gpt import GPT, GPTConfig


def tokens(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def test_published_sizes() -> None:
    config = GPTConfig.gpt2()
    assert (config.n_tokens, config.n_positions, config.d_model) == (50257, 1024, 768)
    assert GPTConfig.gpt2("1558M").n_heads == 25
    assert GPTConfig.gpt3().n_layers == 96
    with pytest.raises(ValueError, match="124M, 355M, 774M, 1558M, got '117M'"):
        GPTConfig.gpt2("117M")


@torch.no_grad()
def test_no_token_sees_a_later_one() -> None:
    model, text = small_gpt(), tokens(1, 6)
    before = model(text)
    for t in range(6):
        changed = text.clone()
        changed[:, t] = (text[:, t] + 1) % V
        differs = (model(changed) != before).any(dim=-1)[0]
        assert differs.tolist() == [i >= t for i in range(6)]


@torch.no_grad()
def test_padding_on_either_side_has_no_influence() -> None:
    model, text = small_gpt(), tokens(1, 6)
    for real in ([False, True, True, True, True, False], [True] * 4 + [False] * 2):
        mask = torch.tensor([real])
        padded = model(text, padding_mask=mask)[mask]
        torch.testing.assert_close(padded, model(text[mask][None])[0])


def test_a_text_longer_than_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match=r"positions run from 0 to 24, the table holds 0\.\.23"):
        small_gpt()(tokens(1, 25))


@torch.no_grad()
def test_static_caches() -> None:
    model, text = small_gpt(), tokens(2, 6)
    caches = make_caches(2, n_positions=6)
    assert all(isinstance(cache, StaticCache) for cache in caches)
    pieces = [model(piece, caches=caches) for piece in text.split([2, 3, 1], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), model(text))


@torch.no_grad()
def test_first_weights() -> None:
    torch.manual_seed(0)
    model = GPT(GPTConfig(100, 50, 128, 8, 4))
    layer = model.stack.layers[3]
    for weight, std in (
        (model.token_embedding.weight, 0.02),
        (model.position_embedding.weight, 0.02),
        (layer.attention.project_query.weight, 0.02),
        (layer.feed_forward.expand.weight, 0.02),
        (layer.attention.project_output.weight, 0.02 / 4),  # 2 * 8 weights write to the stream
        (layer.feed_forward.contract.weight, 0.02 / 4),
    ):
        assert float(weight.std()) == pytest.approx(std, rel=0.05)
    assert not layer.feed_forward.expand.bias.any()
    # a model that knows nothing gives every token about the same probability
    loss = model(tokens(4, 20)).log_softmax(-1).mean()
    assert float(loss) == pytest.approx(-torch.tensor(100.0).log().item(), rel=0.03)


@torch.no_grad()
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("padded", [False, True])
def test_halves(dtype: torch.dtype, padded: bool) -> None:
    model, text = small_gpt(), tokens(2, 5)
    mask = torch.tensor([[False, False, True, True, True], [True] * 5]) if padded else None
    valid = torch.ones_like(text, dtype=torch.bool) if mask is None else mask
    expected = model(text, padding_mask=mask)
    logits = model.to(dtype)(text, padding_mask=mask)
    assert logits.dtype == dtype
    assert logits.isfinite().all()
    torch.testing.assert_close(logits.float()[valid], expected[valid], rtol=0.1, atol=0.15)
