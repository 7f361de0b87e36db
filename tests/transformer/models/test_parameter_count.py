"""Parameter counts: by formula, by module, and as published."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from flower_transformer.blocks import DecoderLayer, EncoderLayer, LayerConfig
from flower_transformer.models import (
    bert,
    cnn_attention,
    gpt,
    llama,
    rnn_attention,
    text_classifier,
    transformer,
    vit,
)
from flower_transformer.models.parameter_count import count_parameters, layer_parameters


def count_without_memory(kind: type[torch.nn.Module], config: object) -> int:
    with torch.device("meta"):
        return count_parameters(kind(config))


PUBLISHED = [
    (gpt, gpt.GPT, gpt.GPTConfig.gpt2("124M"), 124_439_808),
    (gpt, gpt.GPT, gpt.GPTConfig.gpt2("355M"), 354_823_168),
    (gpt, gpt.GPT, gpt.GPTConfig.gpt2("774M"), 774_030_080),
    (gpt, gpt.GPT, gpt.GPTConfig.gpt2("1558M"), 1_557_611_200),
    (llama, llama.Llama, llama.LlamaConfig.llama2_7b(), 6_738_415_616),
    (llama, llama.Llama, llama.LlamaConfig.llama3_8b(), 8_030_261_248),
    (llama, llama.Llama, llama.LlamaConfig.llama3_2_1b(), 1_235_814_400),
    (llama, llama.Llama, llama.LlamaConfig.mistral_7b(), 7_241_732_096),
    (bert, bert.BERT, bert.BERTConfig.base(), 109_482_240),
    (bert, bert.BERT, bert.BERTConfig.large(), 335_141_888),
    (vit, vit.ViT, vit.ViTConfig.base16(), 86_567_656),
    (vit, vit.ViT, vit.ViTConfig.large16(), 304_326_632),
    (vit, vit.ViT, vit.ViTConfig.huge14(), 632_045_800),
]


@pytest.mark.parametrize(("module", "kind", "config", "expected"), PUBLISHED)
def test_counts_of_released_weights(
    module: ModuleType, kind: type[torch.nn.Module], config: object, expected: int
) -> None:
    assert module.parameter_count(config) == expected
    assert count_without_memory(kind, config) == expected


def test_gpt3_has_175_billion() -> None:
    config = gpt.GPTConfig.gpt3()
    count = gpt.parameter_count(config)
    assert count == count_without_memory(gpt.GPT, config)
    assert round(count / 1e9) == 175


def test_the_paper_counts_its_transformers_within_3_percent() -> None:
    for config, millions in (
        (transformer.TransformerConfig.base(), 65),
        (transformer.TransformerConfig.big(), 213),
    ):
        count = transformer.parameter_count(config)
        assert count == count_without_memory(transformer.Transformer, config)
        assert count / 1e6 == pytest.approx(millions, rel=0.03)


def test_bert_with_heads() -> None:
    config = bert.BERTConfig.base()
    by_module = count_without_memory(bert.BERTForPreTraining, config)
    assert bert.parameter_count(config, heads=True) == by_module == 110_106_428


def test_rnnsearch() -> None:
    config = rnn_attention.RNNAttentionConfig.rnnsearch()
    by_module = count_without_memory(rnn_attention.RNNAttention, config)
    assert rnn_attention.parameter_count(config) == by_module


@given(d=st.integers(1, 9), heads=st.integers(1, 3))
def test_a_layer_of_gpt2_by_hand(d: int, heads: int) -> None:
    d_model = d * heads
    config = LayerConfig(d_model, heads, 4 * d_model, feed_forward="gelu_tanh")
    assert layer_parameters(config) == 12 * d_model**2 + 13 * d_model


@given(
    config=st.builds(
        LayerConfig,
        d_model=st.just(12),
        n_heads=st.just(6),
        d_ff=st.integers(1, 20),
        n_kv_heads=st.sampled_from([None, 1, 2, 3]),
        d_k=st.sampled_from([None, 4]),
        bias=st.booleans(),
        feed_forward=st.sampled_from(["relu", "swiglu", "bilinear"]),
        norm=st.sampled_from(["layer_norm", "rms_norm"]),
    )
)
def test_layers(config: LayerConfig) -> None:
    assert layer_parameters(config) == count_parameters(EncoderLayer(config))
    both = layer_parameters(config, cross_attention=True)
    assert both == count_parameters(DecoderLayer(config))


sizes = st.integers(1, 7)
SMALL = {
    gpt.GPT: st.builds(
        gpt.GPTConfig, sizes, sizes, d_model=st.just(6), n_layers=st.just(2), n_heads=st.just(3)
    ),
    llama.Llama: st.builds(
        llama.LlamaConfig,
        n_tokens=sizes,
        d_model=st.just(12),
        n_layers=st.just(2),
        n_heads=st.just(6),
        n_kv_heads=st.sampled_from([1, 2, 6]),
        d_ff=sizes,
        d_k=st.sampled_from([None, 4]),
        tied=st.booleans(),
    ),
    bert.BERT: st.builds(
        bert.BERTConfig, sizes, sizes, st.just(6), st.just(1), st.just(2), sizes, sizes
    ),
    vit.ViT: st.builds(
        vit.ViTConfig,
        st.sampled_from([4, 8]),
        st.sampled_from([1, 2, 4]),
        sizes,
        st.just(6),
        st.just(1),
        st.just(2),
        sizes,
        sizes,
    ),
    transformer.Transformer: st.builds(
        transformer.TransformerConfig,
        st.just(5),
        st.just(5),
        st.just(6),
        st.integers(1, 2),
        st.just(3),
        sizes,
        tied=st.booleans(),
        norm_order=st.sampled_from(["pre", "post"]),
    ),
    text_classifier.TextClassifier: st.builds(
        text_classifier.TextClassifierConfig,
        sizes,
        sizes,
        st.just(6),
        st.just(1),
        st.just(3),
        sizes,
        norm_order=st.sampled_from(["pre", "post"]),
    ),
    rnn_attention.RNNAttention: st.builds(
        rnn_attention.RNNAttentionConfig, sizes, sizes, sizes, sizes, sizes
    ),
    cnn_attention.CNNAttention: st.builds(
        cnn_attention.CNNAttentionConfig,
        sizes,
        sizes,
        st.lists(st.sampled_from([4, 8, 12]), min_size=1, max_size=3).map(tuple),
        st.sampled_from([1, 2, 4]),
        st.sampled_from([1, 3, 7]),
    ),
}
MODULES = {
    kind: module
    for module in (
        gpt, llama, bert, vit, transformer, text_classifier, rnn_attention, cnn_attention,
    )
    for kind in SMALL
    if kind.__module__ == module.__name__
}  # fmt: skip


@pytest.mark.parametrize("kind", SMALL)
@settings(max_examples=20)
@given(data=st.data())
def test_formula_equals_module(kind: type[torch.nn.Module], data: st.DataObject) -> None:
    config = data.draw(SMALL[kind])
    assert MODULES[kind].parameter_count(config) == count_without_memory(kind, config)
