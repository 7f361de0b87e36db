r"""Text from a language model, token by token: greedy or sampled, whole or as a stream.

Legend: B batch, T length of the prompt, N new tokens, V vocabulary.

Rows of a batch end one by one, each with its first EOS; from then on a row holds padding, and when
all have ended the model is not asked again. Prompts of different lengths are padded on the *left*,
so that every row goes on at the same place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from flower_transformer.cache import Cache
from flower_transformer.masks import require_boolean
from flower_transformer.sampling import GREEDY, Sampling, choose_tokens


class LanguageModel(Protocol):
    """What generation asks of a model: GPT, Llama, or a translation model given its source."""

    @property
    def training(self) -> bool:
        """Whether dropout is on."""
        ...

    def __call__(
        self,
        tokens: Tensor,
        *,
        padding_mask: Tensor | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Tensor:
        """Score the next token after each of the new tokens: (B, T) -> (B, T, V)."""
        ...

    def make_caches(self) -> list[Cache]:
        """Make a cache for each layer; none for a model that always reads the whole text."""
        ...


def stream(
    model: LanguageModel,
    prompt: Tensor,
    *,
    n_new: int,
    sampling: Sampling = GREEDY,
    prompt_mask: Tensor | None = None,
    eos_token: int | None = None,
    pad_token: int | None = None,
    generator: torch.Generator | None = None,
    cached: bool = True,
) -> Iterator[Tensor]:
    """Generate, and give out each token as soon as it is chosen.

    Args:
        model: in evaluation mode.
        prompt: integers (B, T), T >= 1.
        n_new: N, the most tokens to generate.
        sampling: how to choose; the most likely token when left out.
        prompt_mask: boolean (B, T), True = real token; padding on the left. None: all are real.
        eos_token: the token that ends a text; None: every row gets N tokens.
        pad_token: what follows it; EOS itself when left out.
        generator: of random numbers.
        cached: keep keys and values; without, the model reads the whole text for each token. Both
            give the same tokens.

    Returns:
        An iterator over the next token of each row (B,), at most N times.

    Raises:
        ValueError: the model is in training mode, the prompt is empty, its mask does not fit or is
            not padded on the left, n_new < 0, or there is a pad_token but no eos_token.
    """
    reader = Reader(model, prompt, prompt_mask=prompt_mask, cached=cached)
    if n_new < 0:
        raise ValueError(f"n_new must not be negative, got {n_new}")
    if eos_token is None and pad_token is not None:
        raise ValueError(f"pad_token is {pad_token}, but without an eos_token no row ends")
    pad_token = eos_token if pad_token is None else pad_token
    return _continue(reader, prompt, n_new, sampling, eos_token, pad_token, generator)


def generate(
    model: LanguageModel,
    prompt: Tensor,
    *,
    n_new: int,
    sampling: Sampling = GREEDY,
    prompt_mask: Tensor | None = None,
    eos_token: int | None = None,
    pad_token: int | None = None,
    generator: torch.Generator | None = None,
    cached: bool = True,
) -> Tensor:
    """Generate, and return all new tokens at the end; the arguments are those of `stream`.

    Args:
        model: in evaluation mode.
        prompt: integers (B, T), T >= 1.
        n_new: N, the most tokens to generate.
        sampling: how to choose; the most likely token when left out.
        prompt_mask: boolean (B, T), True = real token; padding on the left.
        eos_token: the token that ends a text.
        pad_token: what follows it; EOS itself when left out.
        generator: of random numbers.
        cached: keep keys and values.

    Returns:
        The new tokens (B, N), without the prompt. Each row ends with its first EOS, and padding up
        to the longest row; N is smaller if all rows have ended.

    Raises:
        ValueError: as `stream`.
    """
    tokens = stream(
        model,
        prompt,
        n_new=n_new,
        sampling=sampling,
        prompt_mask=prompt_mask,
        eos_token=eos_token,
        pad_token=pad_token,
        generator=generator,
        cached=cached,
    )
    return torch.stack([prompt.new_empty(len(prompt)), *tokens], dim=-1)[:, 1:]


class Reader:
    """A model in the middle of a text: it is given new tokens and scores the next one.

    Args:
        model: in evaluation mode.
        prompt: (B, T), looked at for its shape only; `read` it first.
        prompt_mask: boolean (B, T), True = real token; padding on the left.
        cached: keep keys and values, or else the text.

    Raises:
        ValueError: see `stream`.
    """

    def __init__(
        self, model: LanguageModel, prompt: Tensor, *, prompt_mask: Tensor | None, cached: bool
    ) -> None:
        if model.training:
            raise ValueError("the model is in training mode, with dropout: call eval() before")
        if prompt.dim() != 2 or prompt.shape[-1] < 1:
            raise ValueError(f"prompt must be (B, T) with T >= 1, got {tuple(prompt.shape)}")
        if prompt_mask is not None:
            require_boolean("prompt_mask", prompt_mask)
            if prompt_mask.shape != prompt.shape:
                shapes = f"{tuple(prompt_mask.shape)}, the prompt {tuple(prompt.shape)}"
                raise ValueError(f"prompt_mask has shape {shapes}")
            if not prompt_mask[:, -1].all():
                row = int(prompt_mask[:, -1].logical_not().nonzero()[0])
                raise ValueError(f"row {row} of the prompt ends with padding; pad on the left")
        self._model = model
        self._caches = model.make_caches() if cached else []
        self._text = prompt[:, :0]
        self._real = None if prompt_mask is None else prompt_mask
        self._n_prompt = prompt.shape[-1]

    def read(self, tokens: Tensor) -> Tensor:
        """Read new tokens (B, T) and score what follows the last of them: (B, V)."""
        self._text = torch.cat((self._text, tokens), dim=-1)
        real = None
        if self._real is not None:  # what was generated is real
            n_generated = self._text.shape[-1] - self._n_prompt
            real = torch.nn.functional.pad(self._real, (0, n_generated), value=True)
        if not self._caches:
            return self._model(self._text, padding_mask=real)[:, -1]
        return self._model(tokens, padding_mask=real, caches=self._caches)[:, -1]

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order; see `Cache.select`."""
        self._text = self._text[rows]
        self._real = None if self._real is None else self._real[rows]
        for cache in self._caches:
            cache.select(rows)


@torch.no_grad()
def _continue(
    reader: Reader,
    prompt: Tensor,
    n_new: int,
    sampling: Sampling,
    eos_token: int | None,
    pad_token: int | None,
    generator: torch.Generator | None,
) -> Iterator[Tensor]:
    """Read, choose, give out; again with what was chosen."""
    ended = torch.zeros(len(prompt), dtype=torch.bool, device=prompt.device)
    new = prompt
    for _ in range(n_new):
        tokens = choose_tokens(reader.read(new), sampling, generator=generator)  # (B,)
        if eos_token is not None and pad_token is not None:
            tokens = tokens.masked_fill(ended, pad_token)
            ended = ended | (tokens == eos_token)
        yield tokens
        if ended.all():
            return
        new = tokens.unsqueeze(-1)  # (B,) -> (B, 1)
