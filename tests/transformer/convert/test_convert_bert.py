"""BERT of transformers, with copied weights: vectors, logits of both tasks, gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import DTYPES, assert_parity, assert_round_trip, make_peer, transformers

from flower_transformer.convert.bert import bert_config, bert_pre_training_weights, bert_weights
from flower_transformer.convert.correspondence import import_weights
from flower_transformer.models.bert import BERT, BERTForPreTraining


def peer(kind: str, dtype: torch.dtype, seed: int, **sizes: int) -> torch.nn.Module:
    config = transformers.BertConfig(
        vocab_size=13, max_position_embeddings=16, intermediate_size=14, pad_token_id=None, **sizes
    )
    return make_peer(getattr(transformers, kind), config, dtype, seed)


def texts(length: int, padding: int, seed: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(13, (2, length), generator=generator)
    segments = torch.randint(2, (2, length), generator=generator)
    real = torch.ones(2, length, dtype=torch.bool)
    real[1, length - min(padding, length - 1) :] = False
    return tokens, segments, real


sizes = {
    "n_layers": st.integers(1, 2),
    "n_heads": st.integers(1, 3),
    "width": st.integers(4, 6),
    "length": st.integers(1, 9),
    "padding": st.integers(0, 3),
    "seed": st.integers(0, 2**31),
}


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=6)
@given(**sizes)
def test_parity_of_the_body(
    dtype: torch.dtype,
    n_layers: int,
    n_heads: int,
    width: int,
    length: int,
    padding: int,
    seed: int,
) -> None:
    theirs = peer(
        "BertModel",
        dtype,
        seed,
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        hidden_size=n_heads * width,
    )
    config = bert_config(theirs.config.to_dict())
    ours = BERT(config).to(dtype).eval()
    import_weights(ours, theirs.state_dict(), bert_weights(config))
    tokens, segments, real = texts(length, padding, seed)

    def run(model: BERT) -> torch.Tensor:
        hidden, pooled = model(tokens, segments=segments, padding_mask=real)
        return torch.cat((hidden[real], pooled))

    def run_theirs(model: torch.nn.Module) -> torch.Tensor:
        out = model(tokens, token_type_ids=segments, attention_mask=real.long())
        return torch.cat((out.last_hidden_state[real], out.pooler_output))

    assert_parity(ours, theirs, bert_weights(config), run, run_theirs, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=6)
@given(**sizes)
def test_parity_of_both_tasks(
    dtype: torch.dtype,
    n_layers: int,
    n_heads: int,
    width: int,
    length: int,
    padding: int,
    seed: int,
) -> None:
    theirs = peer(
        "BertForPreTraining",
        dtype,
        seed,
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        hidden_size=n_heads * width,
    )
    config = bert_config(theirs.config.to_dict())
    ours = BERTForPreTraining(config).to(dtype).eval()
    import_weights(ours, theirs.state_dict(), bert_pre_training_weights(config))
    tokens, segments, real = texts(length, padding, seed)

    def run(model: BERTForPreTraining) -> torch.Tensor:
        token_logits, next_sentence = model(tokens, segments=segments, padding_mask=real)
        return torch.cat((token_logits[real].flatten(), next_sentence.flatten()))

    def run_theirs(model: torch.nn.Module) -> torch.Tensor:
        out = model(tokens, token_type_ids=segments, attention_mask=real.long())
        return torch.cat(
            (out.prediction_logits[real].flatten(), out.seq_relationship_logits.flatten())
        )

    assert_parity(ours, theirs, bert_pre_training_weights(config), run, run_theirs, dtype)


SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8}


def test_round_trip() -> None:
    theirs = peer("BertModel", torch.float32, 0, **SIZES)
    config = bert_config(theirs.config.to_dict())
    assert_round_trip(BERT(config), theirs, bert_weights(config))
    theirs = peer("BertForPreTraining", torch.float32, 0, **SIZES)
    assert_round_trip(BERTForPreTraining(config), theirs, bert_pre_training_weights(config))


def test_other_variants_are_refused() -> None:
    numbers = transformers.BertConfig().to_dict()
    with pytest.raises(ValueError, match="hidden_act is 'relu', supported is 'gelu'"):
        bert_config(numbers | {"hidden_act": "relu"})
    with pytest.raises(ValueError, match="position_embedding_type is 'relative_key'"):
        bert_config(numbers | {"position_embedding_type": "relative_key"})
