"""BERT: both sides are seen, padding is not, segments and heads do what they are for."""

from __future__ import annotations

import torch
from parity import draw

from flower_transformer.models.bert import BERT, BERTConfig, BERTForPreTraining

CONFIG = BERTConfig(11, 12, 8, 2, 2, 16)


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(11, shape, generator=torch.Generator().manual_seed(0))


def body() -> BERT:
    model = BERT(CONFIG)
    draw(model)
    return model.eval()


@torch.no_grad()
def test_every_token_sees_every_token() -> None:
    model, text = body(), tokens(1, 5)
    before = model(text)
    changed = text.clone()
    changed[:, 4] = (text[:, 4] + 1) % 11
    after = model(changed)
    assert (after.hidden != before.hidden).any(dim=-1).all()
    assert (after.pooled != before.pooled).any()


@torch.no_grad()
def test_padding_has_no_influence() -> None:
    model, text = body(), tokens(2, 6)
    real = torch.tensor([[True] * 4 + [False] * 2, [True] * 6])
    padded = model(text, padding_mask=real)
    alone = model(text[:1, :4])
    torch.testing.assert_close(padded.hidden[:1, :4], alone.hidden)
    torch.testing.assert_close(padded.pooled[:1], alone.pooled)


@torch.no_grad()
def test_segments_are_0_when_left_out() -> None:
    model, text = body(), tokens(1, 5)
    zeros, ones = torch.zeros_like(text), torch.ones_like(text)
    assert torch.equal(model(text).hidden, model(text, segments=zeros).hidden)
    assert not torch.equal(model(text).hidden, model(text, segments=ones).hidden)


def test_published_sizes() -> None:
    assert (BERTConfig.base().n_layers, BERTConfig.large().n_layers) == (12, 24)


def test_shapes_and_gradients_of_both_tasks() -> None:
    model = BERTForPreTraining(CONFIG)
    draw(model)
    token_logits, next_sentence = model(tokens(2, 5))
    assert (token_logits.shape, next_sentence.shape) == ((2, 5, 11), (2, 2))
    (token_logits.square().sum() + next_sentence.square().sum()).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
