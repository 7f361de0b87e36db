"""Generation: what is read, what is given out, and when it stops."""

from __future__ import annotations

import pytest
import torch
from small_models import V, small_gpt, small_llama
from table_model import TableModel

from flower_transformer.generate import generate, stream
from flower_transformer.sampling import Sampling

CYCLE = TableModel([[0, 1, 0], [0, 0, 1], [1, 0, 0]])  # 0 -> 1 -> 2 -> 0


def tokens(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def test_greedy_by_hand() -> None:
    prompt = torch.tensor([[2, 0], [0, 2]])
    assert generate(CYCLE, prompt, n_new=4).tolist() == [[1, 2, 0, 1], [0, 1, 2, 0]]
    assert generate(CYCLE, prompt, n_new=0).shape == (2, 0)


def test_a_stream_gives_each_token_when_it_is_chosen() -> None:
    model = TableModel([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    pieces = stream(model, torch.tensor([[0]]), n_new=100)
    assert [int(next(pieces)) for _ in range(3)] == [1, 2, 0]
    assert model.n_read == 1 + 2 + 3  # without a cache: the whole text each time


@pytest.mark.parametrize("model", [small_gpt(), small_llama(), small_llama(window=3)])
@pytest.mark.parametrize(
    "sampling", [Sampling(temperature=0), Sampling(temperature=0.7, top_k=8, top_p=0.9, min_p=0.01)]
)
def test_cached_and_uncached_agree(model: torch.nn.Module, sampling: Sampling) -> None:
    real = torch.tensor([[False, False, True, True], [True] * 4])
    texts = [
        generate(
            model,
            tokens(2, 4),
            n_new=12,
            sampling=sampling,
            prompt_mask=real,
            generator=torch.Generator().manual_seed(1),
            cached=cached,
        )
        for cached in (True, False)
    ]
    assert torch.equal(*texts)
    assert texts[0].shape == (2, 12)


@pytest.mark.parametrize("model", [small_gpt(), small_llama()])
def test_a_padded_row_is_generated_as_if_alone(model: torch.nn.Module) -> None:
    prompt, real = tokens(2, 5), torch.tensor([[False, False, True, True, True], [True] * 5])
    batch = generate(model, prompt, n_new=8, prompt_mask=real)
    for row in range(2):
        alone = generate(model, prompt[row][real[row]].unsqueeze(0), n_new=8)
        assert batch[row].tolist() == alone[0].tolist()


def test_no_gradient_is_recorded() -> None:
    first = next(stream(small_gpt(), tokens(1, 3), n_new=2))
    assert not first.requires_grad
    assert torch.is_grad_enabled()


def test_errors() -> None:
    prompt, half = torch.tensor([[0, 1]]), torch.tensor([[True, False]])
    with pytest.raises(ValueError, match="training mode"):
        generate(small_gpt().train(), prompt, n_new=1)
    with pytest.raises(ValueError, match=r"T >= 1, got \(1, 0\)"):
        generate(CYCLE, prompt[:, :0], n_new=1)
    with pytest.raises(ValueError, match="row 0 of the prompt ends with padding"):
        generate(CYCLE, prompt, n_new=1, prompt_mask=half)
    with pytest.raises(ValueError, match=r"\(1, 1\), the prompt \(1, 2\)"):
        generate(CYCLE, prompt, n_new=1, prompt_mask=half[:, :1])
    with pytest.raises(ValueError, match="n_new must not be negative, got -1"):
        generate(CYCLE, prompt, n_new=-1)
    with pytest.raises(ValueError, match="pad_token is 0, but without an eos_token"):
        generate(CYCLE, prompt, n_new=1, pad_token=0)
