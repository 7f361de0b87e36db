"""The recurrent model: its GRUs against torch's, padding, alignment, generation."""

from __future__ import annotations

import pytest
import torch
from parity import draw
from torch import nn

from flower_transformer.beam_search import beam_search
from flower_transformer.generate import generate
from flower_transformer.models.rnn_attention import RNNAttention, RNNAttentionConfig

CONFIG = RNNAttentionConfig(11, 9, 5, 6, 7)
REAL = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])


def tokens(n: int, *shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(n, shape, generator=torch.Generator().manual_seed(seed))


def small() -> RNNAttention:
    model = RNNAttention(CONFIG).double()
    draw(model)
    return model.eval()


def test_the_encoder_is_torchs_bidirectional_gru_on_packed_texts() -> None:
    model, source = small(), tokens(11, 2, 5)
    theirs = nn.GRU(5, 6, bidirectional=True, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for cell, suffix in ((model.forwards, ""), (model.backwards, "_reverse")):
            for name, parameter in cell.named_parameters():
                getattr(theirs, f"{name}_l0{suffix}").copy_(parameter)
    packed = nn.utils.rnn.pack_padded_sequence(
        model.source_embedding(source), REAL.sum(-1), batch_first=True, enforce_sorted=False
    )
    expected, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    states = model.encode(source, source_mask=REAL).states
    torch.testing.assert_close(states, expected, rtol=1e-10, atol=1e-10)


def test_a_step_of_the_decoder_by_the_formula() -> None:
    model, source, target = small(), tokens(11, 1, 4), tokens(9, 1, 1)
    h, s_0, _ = model.encode(source)
    attention = model.attention
    hidden = torch.tanh(attention.project_query(s_0)[:, None] + attention.project_key(h))
    alpha = (hidden @ attention.v).softmax(-1)  # (1, 4)
    c = (alpha[..., None] * h).sum(1)
    y = model.target_embedding(target[:, 0])
    s_1 = model.decoder(torch.cat((y, c), -1), s_0)
    expected = model.output(torch.tanh(model.read_out(torch.cat((s_1, y, c), -1))))
    logits, weights = model.decode(target, model.encode(source))
    torch.testing.assert_close(logits[:, 0], expected)
    torch.testing.assert_close(weights[:, 0], alpha)


def test_padding_of_the_source_changes_nothing() -> None:
    model, source, target = small(), tokens(11, 2, 5), tokens(9, 2, 4)
    logits = model(source, target, source_mask=REAL)
    torch.testing.assert_close(logits[:1], model(source[:1, :3], target[:1]))
    torch.testing.assert_close(logits[1:], model(source[1:], target[1:]))


def test_no_token_sees_a_later_one() -> None:
    model, source, target = small(), tokens(11, 1, 5), tokens(9, 1, 4)
    changed = target.clone()
    changed[:, 2] = (target[:, 2] + 1) % 9
    differs = (model(source, changed) != model(source, target)).any(dim=-1)[0]
    assert differs.tolist() == [False, False, True, True]


def test_generation_and_beams() -> None:
    model, source = small(), tokens(11, 2, 5)
    given, bos = model.given(source, source_mask=REAL), torch.zeros(2, 1, dtype=torch.long)
    new = generate(given, bos, n_new=6, eos_token=1)
    text = bos
    for _ in range(6):
        best = model(source, text, source_mask=REAL)[:, -1].argmax(-1)
        text = torch.cat((text, best[:, None]), dim=1)
    for row, expected in zip(new.tolist(), text[:, 1:].tolist(), strict=True):
        end = expected.index(1) + 1 if 1 in expected else 6
        assert row[:end] == expected[:end]
    for row, beams in enumerate(beam_search(given, bos, n_beams=3, n_new=5, eos_token=1)):
        for h in beams:
            written = torch.tensor([[0, *h.tokens]])
            log_p = model(source[row : row + 1], written[:, :-1], source_mask=REAL[row : row + 1])
            total = log_p.log_softmax(-1).gather(-1, written[:, 1:, None]).sum()
            assert h.log_probability == pytest.approx(total.item(), abs=1e-4)


def test_errors() -> None:
    model, source = small(), tokens(11, 2, 5)
    with pytest.raises(ValueError, match=r"\(2, 3\), the source \(2, 5\)"):
        model.encode(source, source_mask=REAL[:, :3])
    given = model.given(source)
    assert not given.training
    with pytest.raises(ValueError, match="takes no padding_mask and no caches"):
        given(tokens(9, 2, 1), padding_mask=REAL[:, :1])
    with pytest.raises(ValueError, match="3 targets are no multiple of 2 sources"):
        given(tokens(9, 3, 1))


def test_every_weight_gets_a_gradient() -> None:
    model = small().train()
    model(tokens(11, 2, 5), tokens(9, 2, 4), source_mask=REAL).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
