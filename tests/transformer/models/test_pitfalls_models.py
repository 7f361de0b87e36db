"""Known ways to get a model, its cache or its decoding wrong, each reported against a project.

The number in a test's name is its row in the project's list of pitfalls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from parity import draw
from small_models import POSITIONS, SmallDecoder, V, small_gpt, small_llama, small_transformer
from table_model import TableModel
from torch import nn

from flower_transformer.beam_search import (
    LengthPenalty,
    beam_search,
    gnmt_penalty,
    mean_penalty,
)
from flower_transformer.blocks import LayerConfig
from flower_transformer.cache import Cache, make_caches
from flower_transformer.convert.correspondence import import_weights
from flower_transformer.convert.torch_layers import encoder_layer_weights
from flower_transformer.generate import generate, stream
from flower_transformer.masks import window_mask
from flower_transformer.models.bert import BERT, BERTConfig
from flower_transformer.models.rnn_attention import RNNAttention, RNNAttentionConfig
from flower_transformer.models.transformer import Transformer
from flower_transformer.norms import RMSNorm
from flower_transformer.sampling import (
    Sampling,
    choose_tokens,
    keep_top_k,
    keep_top_p,
    next_token_probabilities,
    with_temperature,
)
from flower_transformer.stacks import Encoder
from flower_transformer.training.checkpoint import load_weights, save_weights
from flower_transformer.training.data import collate_texts
from flower_transformer.training.losses import cross_entropy

SPLITS = ([1, 5], [3, 3], [1] * 6)
LEFT = torch.tensor([[False, False, True, True, True, True], [True] * 6])  # True = real token


def tokens(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def in_pieces(
    model: SmallDecoder,
    text: torch.Tensor,
    split: list[int],
    caches: list[Cache],
    real: torch.Tensor | None = None,
) -> torch.Tensor:
    """Logits of a text that is read piece by piece."""
    logits, start = [], 0
    for size in split:
        end = start + size
        mask = None if real is None else real[:, :end]
        logits.append(model(text[:, start:end], padding_mask=mask, caches=caches))
        start = end
    return torch.cat(logits, dim=1)


@torch.no_grad()
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("n_positions", [None, 6])
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("kind", POSITIONS)
def test_pitfall_14_cached_logits_are_the_full_logits(
    kind: str, split: list[int], window: int | None, n_positions: int | None, padded: bool
) -> None:
    """rasbt PR #697, #925: offset or mask of the cache wrong."""
    model, text = SmallDecoder(kind, window=window), tokens(2, 6)
    real = LEFT if padded else None
    # a static cache keeps everything: the window is in the mask alone
    caches = make_caches(2, n_positions=n_positions, window=None if n_positions else window)
    cached = in_pieces(model, text, split, caches, real)
    full = model(text, padding_mask=real)
    valid = torch.ones_like(text, dtype=torch.bool) if real is None else real
    torch.testing.assert_close(cached[valid], full[valid], rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("kind", POSITIONS)
def test_pitfall_15_left_padding_does_not_shift_positions(kind: str) -> None:
    """transformers #22161."""
    model, text = SmallDecoder(kind), tokens(1, 5)
    real = torch.tensor([[False, False, True, True, True]])
    padded = model(text, padding_mask=real)[:, 2:]
    torch.testing.assert_close(padded, model(text[:, 2:]), rtol=1e-5, atol=1e-5)
    changed = text.clone()
    changed[:, :2] = (text[:, :2] + 1) % V
    torch.testing.assert_close(model(changed, padding_mask=real)[:, 2:], padded)


@torch.no_grad()
@pytest.mark.parametrize("kind", POSITIONS)
def test_pitfall_16_a_prompt_longer_than_the_window_is_exact(kind: str) -> None:
    """litgpt #2182, transformers #37574: the window is off by one."""
    assert window_mask(4, window=2).int().tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]
    model, text = SmallDecoder(kind, window=2), tokens(1, 8)
    full = model(text)
    torch.testing.assert_close(in_pieces(model, text, [5, 1, 1, 1], model.make_caches()), full)
    # two layers with a window of 2 see the newest 3 tokens, and no further
    changed = text.clone()
    changed[:, 4] = (text[:, 4] + 1) % V
    differs = (model(changed) != full).any(dim=-1)[0]
    assert differs.tolist() == [False] * 4 + [True] * 3 + [False]


# --- decoding -------------------------------------------------------------------------------------


def test_pitfall_27_temperature_0_is_argmax() -> None:
    """nanoGPT #738: a division by 0."""
    logits = torch.tensor([[1.0, 3.0, 2.0], [5.0, 5.0, 1.0]])
    for sampling in (Sampling(temperature=0), Sampling(temperature=0, top_k=2, top_p=0.5)):
        assert choose_tokens(logits, sampling).tolist() == [1, 0] == logits.argmax(-1).tolist()
        assert next_token_probabilities(logits, sampling).tolist() == [[0, 1, 0], [1, 0, 0]]
    for refuse in (lambda: Sampling(temperature=-1), lambda: with_temperature(logits, -1)):
        with pytest.raises(ValueError, match="temperature must be at least 0, got -1"):
            refuse()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pitfall_28_top_p_boundary(dtype: torch.dtype) -> None:
    """fish-speech PR #1171; .5 + .3 is not .8 in every precision."""
    p = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=dtype)
    counts = {0.0: 1, 0.5: 1, 0.6: 2, 0.8: 2, 0.85: 3, 1.0: 4}
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        for top_p, count in counts.items():
            kept = keep_top_p(p[order].log(), top_p) > -torch.inf
            assert kept.sum() == count
            assert p[order][kept].sum() == p[:count].sum()  # the most likely ones


def test_pitfall_29_top_k_keeps_k_of_ties() -> None:
    for logits in ([1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 1.0], [1.0] * 4):
        assert (keep_top_k(torch.tensor(logits), 2) > -torch.inf).sum() == 2


def test_pitfall_30_length_counts_new_tokens_and_decides() -> None:
    """vllm #2606, OpenNMT-py #1320: A has log p -2.0 and length 2, B -2.7 and length 4."""
    a, b = -2.0, -2.7
    assert a / mean_penalty(2) < b / mean_penalty(4)
    assert a / gnmt_penalty(2, alpha=0.6) > b / gnmt_penalty(4, alpha=0.6)
    assert a / gnmt_penalty(2, alpha=0) > b / gnmt_penalty(4, alpha=0)
    # the same in a search: 0 -> 1 -> EOS (A) or 0 -> 2 -> 3 -> 4 -> EOS (B), from a long prompt
    start, eos = 0, 5
    table = [[1e-9] * 6 for _ in range(6)]
    table[start][1], table[start][2] = math.exp(-2.0), math.exp(-2.7)
    table[start][start] = 1 - math.exp(-2.0) - math.exp(-2.7)
    for last, following in ((1, eos), (2, 3), (3, 4), (4, eos), (eos, eos)):
        table[last][following] = 1.0
    model = TableModel(table)

    def found(penalty: LengthPenalty) -> dict[tuple[int, ...], float]:
        [row] = beam_search(
            model,
            torch.tensor([[4, 3, 2, 1, start]]),
            n_beams=40,
            n_new=4,
            eos_token=eos,
            length_penalty=penalty,
        )
        return {tuple(h.tokens): h.score for h in row}

    mean = found(mean_penalty)
    assert mean[1, eos] == pytest.approx(-1.0, abs=1e-4)
    assert mean[2, 3, 4, eos] == pytest.approx(-2.7 / 4, abs=1e-4)
    gnmt = found(gnmt_penalty)
    assert gnmt[1, eos] == pytest.approx(-2 / (7 / 6) ** 0.6, abs=1e-4)
    assert gnmt[1, eos] > gnmt[2, 3, 4, eos]
    assert all(eos not in text[:-1] for text in mean)  # nothing goes on after EOS


@pytest.mark.parametrize("seed", range(8))
def test_pitfall_30_beam_1_is_greedy(seed: int) -> None:
    model = SmallDecoder("half_split")
    draw(model, seed)
    prompt, eos = tokens(3, 4, seed=seed), 2
    greedy = generate(model, prompt, n_new=10, eos_token=eos)
    beams = beam_search(model, prompt, n_beams=1, n_new=10, eos_token=eos)
    for row, [hypothesis] in zip(greedy.tolist(), beams, strict=True):
        end = row.index(eos) + 1 if eos in row else len(row)
        assert hypothesis.tokens == row[:end]


def test_pitfall_31_finished_rows_emit_padding_and_decoding_stops() -> None:
    """mistral-inference PR #270."""
    eos, pad = 3, 4
    # 0 -> 1 -> 2 -> EOS, and EOS -> 0: a row that went on would start again
    step = {0: 1, 1: 2, 2: eos, eos: 0, pad: 0}
    model = TableModel([[float(step[a] == b) for b in range(5)] for a in range(5)])
    prompt = torch.tensor([[2], [0], [1]])
    new = generate(model, prompt, n_new=50, eos_token=eos, pad_token=pad)
    assert new.tolist() == [[eos, pad, pad], [1, 2, eos], [2, eos, pad]]
    # padding with EOS itself: one id for both
    new = generate(model, prompt, n_new=50, eos_token=eos)
    assert new.tolist() == [[eos, eos, eos], [1, 2, eos], [2, eos, eos]]
    assert len(list(stream(model, prompt[:1], n_new=50, eos_token=eos))) == 1


# --- whole models ---------------------------------------------------------------------------------


def test_pitfall_20_rms_norm_of_llama() -> None:
    """lmdeploy PR #2842, vllm PR #31464: the weight is the factor, and x is squared in float32."""
    norm = RMSNorm(2, eps=0.0)
    assert type(small_llama().stack.final_norm) is RMSNorm
    x = torch.tensor([3.0, 4.0])
    assert norm(x).tolist() == pytest.approx([0.8485, 1.1314], abs=5e-5)
    with torch.no_grad():
        norm.weight.fill_(2.0)
    assert norm(x).tolist() == pytest.approx([1.6971, 2.2627], abs=5e-5)
    assert norm.half()(torch.tensor([300.0, 400.0]).half()).isfinite().all()  # 400^2 > 65504


def test_pitfall_21_gpt_has_the_tanh_gelu_and_bert_the_exact_one() -> None:
    """nanoGPT #2, PR #274. Their logits are compared in tests/transformer/convert."""
    one = torch.ones(())
    gpt = small_gpt().stack.layers[0].feed_forward.activation
    bert = BERT(BERTConfig(5, 5, 4, 1, 1, 4)).encoder.layers[0].feed_forward.activation
    assert float(gpt(one)) == pytest.approx(0.841192, abs=1e-6)
    assert float(bert(one)) == pytest.approx(0.841345, abs=1e-6)


def test_pitfall_25_labels_are_shifted_once() -> None:
    """transformers #47394, #27517: a model that knows the next token has a loss of 0."""
    batch = collate_texts([[0, 1, 2, 3, 0, 1], [2, 3, 0]], pad_id=9)
    following = torch.eye(10)[[1, 2, 3, 0, 4, 5, 6, 7, 8, 9]].clamp(min=1e-30)
    logits = TableModel(following.tolist())(batch.inputs)
    assert float(cross_entropy(logits, batch.labels)) == pytest.approx(0, abs=1e-6)
    assert float(cross_entropy(logits[:, :-1], batch.labels[:, 1:])) > 10  # shifted twice
    assert float(cross_entropy(logits, batch.inputs)) > 10  # not at all
    # and the logits of our models at t are about token t + 1: they do not see it
    model, text = small_gpt(), tokens(1, 5)
    changed = text.clone()
    changed[:, 3] = (text[:, 3] + 1) % V
    assert torch.equal(model(text)[:, 2], model(changed)[:, 2])


@pytest.mark.parametrize("make", [small_gpt, partial(small_llama, tied=True), small_transformer])
def test_pitfall_32_tied_weights_stay_tied(make: Callable[[], nn.Module], tmp_path: Path) -> None:
    """annotated-transformer's cell, espnet #3454: copied instead of shared."""
    model = make()
    tables = [name for name, p in model.named_parameters() if p.shape[0] == V and p.dim() == 2]
    assert len(tables) == 1  # one entry in parameters()
    save_weights(model, tmp_path / "weights.safetensors")
    loaded = make()
    draw(loaded, seed=7)
    load_weights(loaded, tmp_path / "weights.safetensors")
    for a, b in zip(model.parameters(), loaded.parameters(), strict=True):
        assert torch.equal(a, b)
    if isinstance(loaded, Transformer):
        assert loaded.source_embedding is loaded.target_embedding
    # what changes the one table changes input and output alike
    table = loaded.get_parameter(tables[0])
    embedding = loaded.get_submodule(tables[0].removesuffix(".weight"))
    with torch.no_grad():
        table.add_(1.0)
    scale = 4.0 if embedding.scaled else 1.0  # the root of 16
    assert torch.equal(embedding(torch.arange(V)), scale * table)
    assert torch.equal(embedding.logits(torch.eye(16)), table.T)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_pitfall_33_torchs_fast_path_zeroes_padding_so_valid_places_are_compared() -> None:
    """pytorch #97111, #86120."""
    config = LayerConfig(16, 4, 24)
    layer = nn.TransformerEncoderLayer(16, 4, 24, dropout=0.0, batch_first=True)
    theirs = nn.TransformerEncoder(layer, 1).eval()
    ours = Encoder(config, 1).eval()
    import_weights(ours.layers[0], theirs.layers[0].state_dict(), encoder_layer_weights(config))
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    real = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    with torch.no_grad():
        expected = theirs(x, src_key_padding_mask=~real)
        output = ours(x, key_padding_mask=real)
    assert not expected[~real].any()  # the fast path was taken
    assert output[~real].any()
    torch.testing.assert_close(output[real], expected[real])


def test_pitfall_36_no_weight_on_padding() -> None:
    """tensorflow #43941."""
    model = RNNAttention(RNNAttentionConfig(V, V, 4, 4, 4))
    real = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    source, target = tokens(2, 5), tokens(2, 3)
    _, weights = model.decode(target, model.encode(source, source_mask=real))
    assert (weights[0, :, 3:] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3))
    # nor does a huge score help: the last source token is the best match of all
    annotations = model.encode(source, source_mask=real)
    states = annotations.states.clone()
    states[0, 3:] = 1e4
    _, weights = model.decode(target, annotations._replace(states=states))
    assert (weights[0, :, 3:] == 0).all()
