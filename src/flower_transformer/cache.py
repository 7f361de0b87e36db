r"""Keys and values kept from earlier tokens, so that a new token costs one row of attention.

Legend: B batch, G key/value heads, T new tokens, S keys that the new tokens may look at (the kept
ones and the new), d_k and d_v head widths.

A cache belongs to one layer. `MultiHeadAttention` hands it the keys and values of the T new tokens
and gets back those of all S; masks are aligned with the newest key, so that nothing else changes.
With shared key/value heads G is smaller, and the cache with it. `place_tokens` says at which
positions the new tokens stand.

Caches are for generation, without gradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from flower_transformer.masks import require_boolean
from flower_transformer.positional import consecutive_positions, positions_from_mask


class Cache(ABC):
    """Keys and values of one layer.

    Attributes:
        n_seen: how many tokens have been read so far.
    """

    def __init__(self) -> None:
        self.n_seen = 0

    @property
    @abstractmethod
    def n_kept(self) -> int:
        """How many of the tokens are still held; fewer than n_seen with a window."""

    @abstractmethod
    def update(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Take the keys and values of new tokens.

        Args:
            key: (B, G, T, d_k).
            value: (B, G, T, d_v).

        Returns:
            The kept and the new ones, (B, G, S, d_k) and (B, G, S, d_v) with S = n_kept + T, where
            n_kept is counted before.
        """

    @abstractmethod
    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch, in this order: how beam search reorders its beams.

        Args:
            rows: integers (B',); a row may occur more than once, or not at all.
        """


class GrowingCache(Cache):
    """A cache that grows with the text, and stops growing at a window if there is one.

    Args:
        window: W, how many keys a query sees, its own included (`window_mask`). The next query
            needs the W - 1 newest keys only, and only they are kept. None keeps all.

    Raises:
        ValueError: the window is < 1.

    Source: Jiang et al. 2023, "Mistral 7B", section 2 (the rolling buffer cache).
    """

    def __init__(self, *, window: int | None = None) -> None:
        super().__init__()
        if window is not None and window < 1:
            raise ValueError(f"window must be at least 1 (the position itself), got {window}")
        self.window = window
        self._kept: tuple[Tensor, Tensor] | None = None

    @property
    def n_kept(self) -> int:
        """How many tokens are held: all, or at most W - 1."""
        return 0 if self._kept is None else self._kept[0].shape[-2]

    def update(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append the new keys and values; see `Cache.update`."""
        n_new = key.shape[-2]
        if self._kept is not None:
            key = torch.cat((self._kept[0], key), dim=-2)
            value = torch.cat((self._kept[1], value), dim=-2)
        self.n_seen += n_new
        # All are returned even if few are kept: the first of many new tokens looks far back.
        start = 0 if self.window is None else max(0, key.shape[-2] - self.window + 1)
        self._kept = key[..., start:, :], value[..., start:, :]
        return key, value

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch; see `Cache.select`."""
        if self._kept is not None:
            self._kept = self._kept[0][rows], self._kept[1][rows]


class StaticCache(Cache):
    """A cache whose memory is set aside once, at the first token: nothing is copied afterwards.

    Args:
        n_positions: the longest text, in tokens.

    Raises:
        ValueError: n_positions < 1.
    """

    def __init__(self, n_positions: int) -> None:
        super().__init__()
        if n_positions < 1:
            raise ValueError(f"n_positions must be positive, got {n_positions}")
        self.n_positions = n_positions
        self._memory: tuple[Tensor, Tensor] | None = None

    @property
    def n_kept(self) -> int:
        """How many tokens are held: all."""
        return self.n_seen

    def update(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Write the new keys and values behind the old; see `Cache.update`.

        Raises:
            ValueError: there is no room for them.
        """
        start, end = self.n_seen, self.n_seen + key.shape[-2]
        if end > self.n_positions:
            raise ValueError(f"token {end} does not fit into a cache of {self.n_positions}")
        if self._memory is None:
            room = (*key.shape[:-2], self.n_positions)
            self._memory = (
                key.new_zeros(*room, key.shape[-1]),
                value.new_zeros(*room, value.shape[-1]),
            )
        for memory, new in zip(self._memory, (key, value), strict=True):
            memory[..., start:end, :] = new
        self.n_seen = end
        return self._memory[0][..., :end, :], self._memory[1][..., :end, :]

    def select(self, rows: Tensor) -> None:
        """Keep these rows of the batch; see `Cache.select`."""
        if self._memory is not None:
            self._memory = self._memory[0][rows], self._memory[1][rows]


def make_caches(
    n_layers: int, *, n_positions: int | None = None, window: int | None = None
) -> list[Cache]:
    """Make one cache for each layer.

    Args:
        n_layers: how many.
        n_positions: the longest text: static caches. None: growing ones.
        window: of a sliding window, for growing caches.

    Returns:
        Empty caches.

    Raises:
        ValueError: n_positions and window are both given, or one of them is < 1.
    """
    if n_positions is None:
        return [GrowingCache(window=window) for _ in range(n_layers)]
    if window is not None:
        sizes = f"n_positions {n_positions} and window {window}"
        raise ValueError(f"a cache is static or has a window, got both {sizes}")
    return [StaticCache(n_positions) for _ in range(n_layers)]


class Places(NamedTuple):
    """Where the tokens of one forward pass stand.

    Attributes:
        positions: of the new tokens, integers (T,) or (B, T).
        key_positions: of all that they may look at, integers (S,) or (B, S).
        key_padding_mask: boolean (B, S), True = real token; None without padding.
    """

    positions: Tensor
    key_positions: Tensor
    key_padding_mask: Tensor | None


def place_tokens(
    tokens: Tensor, *, padding_mask: Tensor | None = None, caches: Sequence[Cache] | None = None
) -> Places:
    """Find the positions of new tokens, and of those that the caches hold.

        padding_mask   0 0 1 1 1     the whole text so far, of which the last T = 2 are new
        positions            1 2     padding does not count

    Args:
        tokens: the new tokens (B, T).
        padding_mask: boolean (B, N), True = real token, for all N tokens so far, the new ones
            included.
        caches: those of the layers, which have all read the same; None if all tokens are new.

    Returns:
        Positions and mask, cut to what the caches still hold.

    Raises:
        ValueError: the mask is no boolean (B, N).
    """
    n_new = tokens.shape[-1]
    n_seen, n_kept = (caches[0].n_seen, caches[0].n_kept) if caches else (0, 0)
    n_text, n_key = n_seen + n_new, n_kept + n_new
    if padding_mask is None:
        positions = consecutive_positions(n_text, device=tokens.device)
        return Places(positions[n_seen:], positions[n_text - n_key :], None)
    require_boolean("padding_mask", padding_mask)
    if padding_mask.shape != (tokens.shape[0], n_text):
        shapes = f"{tuple(padding_mask.shape)}, expected {(tokens.shape[0], n_text)}"
        seen = f"{n_seen} seen and {n_new} new tokens"
        raise ValueError(f"padding_mask has shape {shapes} for {seen}")
    positions = positions_from_mask(padding_mask)  # (B, N)
    return Places(
        positions[:, n_seen:], positions[:, n_text - n_key :], padding_mask[:, n_text - n_key :]
    )
