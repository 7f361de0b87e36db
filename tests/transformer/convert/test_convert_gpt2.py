"""GPT-2 of transformers, with copied weights: logits, gradients, and generated tokens."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import (
    DTYPES,
    assert_parity,
    assert_round_trip,
    assert_same_text,
    make_peer,
    transformers,
)

from flower_transformer.convert.correspondence import import_weights
from flower_transformer.convert.gpt2 import gpt2_config, gpt2_weights
from flower_transformer.models.gpt import GPT


def peer(dtype: torch.dtype, seed: int, **sizes: int) -> torch.nn.Module:
    config = transformers.GPT2Config(
        vocab_size=13,
        n_positions=32,
        bos_token_id=None,
        eos_token_id=None,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        **sizes,
    )
    return make_peer(transformers.GPT2LMHeadModel, config, dtype, seed)


def ours_like(theirs: torch.nn.Module, dtype: torch.dtype) -> GPT:
    config = gpt2_config(theirs.config.to_dict())
    model = GPT(config).to(dtype).eval()
    import_weights(model, theirs.state_dict(), gpt2_weights(config))
    return model


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=8)
@given(
    n_layer=st.integers(1, 3),
    n_head=st.integers(1, 3),
    width=st.integers(4, 7),
    length=st.integers(1, 9),
    padding=st.integers(0, 3),
    seed=st.integers(0, 2**31),
)
def test_parity(
    dtype: torch.dtype,
    n_layer: int,
    n_head: int,
    width: int,
    length: int,
    padding: int,
    seed: int,
) -> None:
    theirs = peer(dtype, seed, n_layer=n_layer, n_head=n_head, n_embd=n_head * width)
    ours = ours_like(theirs, dtype)
    text = torch.randint(13, (2, length), generator=torch.Generator().manual_seed(seed))
    real = torch.ones(2, length, dtype=torch.bool)
    real[1, : min(padding, length - 1)] = False
    positions = (real.long().cumsum(-1) - 1).clamp(min=0)
    assert_parity(
        ours,
        theirs,
        gpt2_weights(ours.config),
        lambda model: model(text, padding_mask=real)[real],
        lambda model: model(text, attention_mask=real.long(), position_ids=positions).logits[real],
        dtype,
    )


@pytest.mark.parametrize("seed", range(3))
def test_cached_generation_token_for_token(seed: int) -> None:
    theirs = peer(torch.float64, seed, n_layer=2, n_head=2, n_embd=8)
    ours = ours_like(theirs, torch.float64)
    assert_same_text(ours, theirs, seed)


def test_round_trip() -> None:
    theirs = peer(torch.float32, 0, n_layer=2, n_head=2, n_embd=8)
    ours = GPT(gpt2_config(theirs.config.to_dict()))
    assert_round_trip(ours, theirs, gpt2_weights(ours.config))
    # a causal mask that older files carry is no weight
    old = theirs.state_dict() | {"transformer.h.0.attn.bias": torch.ones(1, 1, 4, 4)}
    import_weights(ours, old, gpt2_weights(ours.config))


def test_other_variants_are_refused() -> None:
    numbers = transformers.GPT2Config().to_dict()
    with pytest.raises(ValueError, match="activation_function is 'relu', supported is 'gelu_new'"):
        gpt2_config(numbers | {"activation_function": "relu"})
    with pytest.raises(ValueError, match="n_inner is 5, supported is None or 3072"):
        gpt2_config(numbers | {"n_inner": 5})
