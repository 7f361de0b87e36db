"""Llama and Mistral of transformers, with copied weights: logits, gradients, generated tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from torch import nn

from flower_transformer.convert.correspondence import import_weights
from flower_transformer.convert.llama import llama_config, llama_weights
from flower_transformer.models.llama import Llama
from flower_transformer.rotary import LinearScaling, Llama3Scaling

SCALINGS = {
    "default": {"rope_type": "default", "rope_theta": 10000.0},
    "other base": {"rope_type": "default", "rope_theta": 500.0},
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    "llama3": {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    },
}


@pytest.fixture(autouse=True, scope="module")
def _norms_in_full_precision() -> Iterator[None]:
    """Their RMSNorm rounds float64 to float32; torch's own formula takes its place."""

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.rms_norm(x, self.weight.shape, self.weight, self.variance_epsilon)

    with pytest.MonkeyPatch.context() as patch:
        for family in ("llama", "mistral"):
            module = getattr(transformers.models, family)
            kind = getattr(getattr(module, f"modeling_{family}"), f"{family.capitalize()}RMSNorm")
            patch.setattr(kind, "forward", forward)
        yield


def peer(
    dtype: torch.dtype, seed: int, *, window: int | None = None, **sizes: object
) -> torch.nn.Module:
    options: dict[str, object] = {
        "vocab_size": 13,
        "bos_token_id": None,
        "eos_token_id": None,
        "max_position_embeddings": 64,
        **sizes,
    }
    if window is None:
        config, kind = transformers.LlamaConfig(**options), transformers.LlamaForCausalLM
    else:
        config = transformers.MistralConfig(sliding_window=window, **options)
        kind = transformers.MistralForCausalLM
    return make_peer(kind, config, dtype, seed)


def ours_like(theirs: torch.nn.Module, dtype: torch.dtype) -> Llama:
    config = llama_config(theirs.config.to_dict())
    model = Llama(config).to(dtype).eval()
    import_weights(model, theirs.state_dict(), llama_weights(config))
    return model


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=8)
@given(
    n_layers=st.integers(1, 2),
    n_kv_heads=st.integers(1, 2),
    group=st.integers(1, 3),
    half_width=st.integers(1, 3),
    length=st.integers(1, 9),
    padding=st.integers(0, 3),
    scaling=st.sampled_from(list(SCALINGS)),
    window=st.sampled_from([None, 3]),
    tied=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_parity(
    dtype: torch.dtype,
    n_layers: int,
    n_kv_heads: int,
    group: int,
    half_width: int,
    length: int,
    padding: int,
    scaling: str,
    window: int | None,
    tied: bool,
    seed: int,
) -> None:
    theirs = peer(
        dtype,
        seed,
        window=window,
        hidden_size=12,  # of which the head width is independent
        num_hidden_layers=n_layers,
        num_attention_heads=n_kv_heads * group,
        num_key_value_heads=n_kv_heads,
        head_dim=2 * half_width,
        intermediate_size=14,
        rope_parameters=dict(SCALINGS[scaling]),
        tie_word_embeddings=tied,
    )
    ours = ours_like(theirs, dtype)
    text = torch.randint(13, (2, length), generator=torch.Generator().manual_seed(seed))
    real = torch.ones(2, length, dtype=torch.bool)
    real[1, : min(padding, length - 1)] = False
    positions = (real.long().cumsum(-1) - 1).clamp(min=0)
    assert_parity(
        ours,
        theirs,
        llama_weights(ours.config),
        lambda model: model(text, padding_mask=real)[real],
        lambda model: model(text, attention_mask=real.long(), position_ids=positions).logits[real],
        dtype,
    )


SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 12,
}


@pytest.mark.parametrize("window", [None, 4])
@pytest.mark.parametrize("seed", range(3))
def test_cached_generation_token_for_token(seed: int, window: int | None) -> None:
    theirs = peer(torch.float64, seed, window=window, head_dim=2, **SIZES)
    assert_same_text(ours_like(theirs, torch.float64), theirs, seed)


@pytest.mark.parametrize("tied", [False, True])
def test_round_trip(tied: bool) -> None:
    theirs = peer(torch.float32, 0, tie_word_embeddings=tied, head_dim=2, **SIZES)
    ours = Llama(llama_config(theirs.config.to_dict()))
    assert_round_trip(ours, theirs, llama_weights(ours.config))


def test_configurations_of_older_files() -> None:
    numbers: dict[str, object] = {"vocab_size": 13, "rms_norm_eps": 1e-6, **SIZES}
    assert llama_config(numbers).rotary_base == 10000
    assert llama_config(numbers | {"rope_theta": 500.0}).rotary_base == 500
    old = {"rope_theta": 500.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}
    assert llama_config(numbers | old).rotary_scaling == LinearScaling(2.0)
    new = {"rope_parameters": SCALINGS["llama3"]}
    assert llama_config(numbers | new).rotary_scaling == Llama3Scaling(8.0, 1.0, 4.0, 16)
    del numbers["num_key_value_heads"]
    assert llama_config(numbers).n_kv_heads == 4


def test_other_variants_are_refused() -> None:
    numbers = {"vocab_size": 13, "rms_norm_eps": 1e-6, **SIZES}
    with pytest.raises(ValueError, match="attention_bias is True, supported is False"):
        llama_config(numbers | {"attention_bias": True})
    with pytest.raises(ValueError, match="rope_type is 'yarn'"):
        llama_config(numbers | {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}})
