"""Token embeddings: the look-up, the scale, and the output that shares the table."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import torch

from flower_transformer.embedding import TokenEmbedding, embed_tokens


def test_by_hand() -> None:
    table = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])  # sqrt(4) = 2
    assert embed_tokens(torch.tensor([[1, 0]]), table).tolist() == [
        [[10, 12, 14, 16], [2, 4, 6, 8]]
    ]


def test_module_equals_function() -> None:
    tokens = torch.tensor([[1, 0, 4], [2, 2, 3]])
    scaled, plain = TokenEmbedding(5, 8).double(), TokenEmbedding(5, 8, scaled=False)
    torch.testing.assert_close(scaled(tokens), embed_tokens(tokens, scaled.weight))
    torch.testing.assert_close(plain(tokens), plain.weight[tokens])
    assert scaled(tokens).dtype == torch.float64
    torch.testing.assert_close(scaled(tokens.int()), scaled(tokens))


def test_scaled_embeddings_have_variance_one_and_logits_as_well() -> None:
    torch.manual_seed(0)
    module = TokenEmbedding(500, 256)
    vectors = module(torch.arange(500))
    assert vectors.var().item() == pytest.approx(1, rel=0.05)
    hidden = torch.randn(500, 256)
    assert module.logits(hidden).var().item() == pytest.approx(1, rel=0.05)


def test_logits_are_products_with_the_table() -> None:
    module = TokenEmbedding(5, 8).double()
    hidden = torch.randn(2, 3, 8, dtype=torch.float64)
    torch.testing.assert_close(module.logits(hidden), hidden @ module.weight.T)


def test_both_uses_train_the_one_table() -> None:
    module = TokenEmbedding(3, 4, scaled=False)
    hidden = torch.ones(1, 4)
    (module(torch.tensor([0])).sum() + module.logits(hidden)[0, 1]).backward()
    assert module.weight.grad.tolist() == [[1] * 4, [1] * 4, [0] * 4]


def test_tied_through_copying_moving_and_saving(tmp_path: Path) -> None:
    module = TokenEmbedding(3, 4, scaled=False)
    torch.save(module.state_dict(), tmp_path / "weights.pt")
    loaded = TokenEmbedding(3, 4, scaled=False)
    loaded.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True), assign=True)
    for copy in (loaded, deepcopy(module), deepcopy(module).double()):
        with torch.no_grad():
            copy.weight.zero_()
        assert (copy(torch.arange(3)) == 0).all()
        assert (copy.logits(torch.ones(4, dtype=copy.weight.dtype)) == 0).all()


def test_padding_token_is_zero_and_stays_so() -> None:
    module = TokenEmbedding(3, 4, padding_token=1)
    tokens = torch.tensor([0, 1, 1])
    assert (module(tokens)[1:] == 0).all()
    module(tokens).sum().backward()
    assert module.weight.grad.tolist() == [[2] * 4, [0] * 4, [0] * 4]


def test_errors_name_the_values() -> None:
    with pytest.raises(ValueError, match=r"int32 or int64\), got torch.float32"):
        TokenEmbedding(3, 4)(torch.tensor([1.0]))
    with pytest.raises(ValueError, match="n_tokens 0, d_model 4"):
        TokenEmbedding(0, 4)
    with pytest.raises(ValueError, match=r"padding_token 3 is outside 0\.\.2"):
        TokenEmbedding(3, 4, padding_token=3)
