"""Caches by hand: what they return, what they keep, and where new tokens stand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.cache import (
    Cache,
    GrowingCache,
    StaticCache,
    make_caches,
    place_tokens,
)


def column(*numbers: float) -> torch.Tensor:
    """One batch, one head, width 1: (1, 1, T, 1)."""
    return torch.tensor(numbers)[None, None, :, None]


@pytest.mark.parametrize("cache", [GrowingCache(), StaticCache(5)])
def test_all_are_returned_in_order(cache: Cache) -> None:
    assert (cache.n_seen, cache.n_kept) == (0, 0)
    key, value = cache.update(column(1, 2), column(10, 20))
    assert key.flatten().tolist() == [1, 2]
    key, value = cache.update(column(3), column(30))
    assert key.flatten().tolist() == [1, 2, 3]
    assert value.flatten().tolist() == [10, 20, 30]
    assert (cache.n_seen, cache.n_kept) == (3, 3)


def test_a_window_keeps_what_the_next_query_sees() -> None:
    cache = GrowingCache(window=3)
    key, _ = cache.update(column(1, 2, 3, 4, 5), column(1, 2, 3, 4, 5))
    assert key.flatten().tolist() == [1, 2, 3, 4, 5]  # a long text at once is not cut
    assert (cache.n_seen, cache.n_kept) == (5, 2)
    key, _ = cache.update(column(6), column(6))
    assert key.flatten().tolist() == [4, 5, 6]
    alone = GrowingCache(window=1)
    alone.update(column(1, 2), column(1, 2))
    assert alone.n_kept == 0
    assert alone.update(column(3), column(3))[0].flatten().tolist() == [3]


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5), seed=st.integers(0, 2**31))
def test_static_and_growing_caches_agree(sizes: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    growing, static = GrowingCache(), StaticCache(sum(sizes))
    for size in sizes:
        key = torch.randn(2, 3, size, 4, generator=generator)  # 3 heads, which several queries read
        value = torch.randn(2, 3, size, 5, generator=generator)
        for ours, theirs in zip(growing.update(key, value), static.update(key, value), strict=True):
            assert torch.equal(ours, theirs)


@pytest.mark.parametrize("cache", [GrowingCache(), StaticCache(4), GrowingCache(window=3)])
def test_rows_are_selected(cache: Cache) -> None:
    cache.select(torch.tensor([0]))  # an empty cache has no rows
    rows = torch.tensor([1.0, 2.0]).reshape(2, 1, 1, 1)
    cache.update(rows, 10 * rows)
    cache.select(torch.tensor([1, 1, 0]))
    key, value = cache.update(torch.zeros(3, 1, 1, 1), torch.zeros(3, 1, 1, 1))
    assert key[..., 0].tolist() == [[[2, 0]], [[2, 0]], [[1, 0]]]
    assert value[..., 0].tolist() == [[[20, 0]], [[20, 0]], [[10, 0]]]


def test_a_static_cache_does_not_move() -> None:
    cache = StaticCache(3)
    first, _ = cache.update(column(1), column(1))
    second, _ = cache.update(column(2), column(2))
    assert first.data_ptr() == second.data_ptr()


def test_dtype_and_widths_are_those_of_the_first_keys() -> None:
    cache = StaticCache(3)
    key, value = cache.update(torch.ones(2, 1, 1, 4).half(), torch.ones(2, 1, 1, 6).half())
    assert key.dtype == torch.float16
    assert (key.shape, value.shape) == ((2, 1, 1, 4), (2, 1, 1, 6))


def test_errors_name_both_values() -> None:
    cache = StaticCache(2)
    with pytest.raises(ValueError, match="token 3 does not fit into a cache of 2"):
        cache.update(column(1, 2, 3), column(1, 2, 3))
    with pytest.raises(ValueError, match="n_positions must be positive, got 0"):
        StaticCache(0)
    with pytest.raises(ValueError, match="window must be at least 1"):
        GrowingCache(window=0)
    with pytest.raises(ValueError, match="n_positions 4 and window 2"):
        make_caches(1, n_positions=4, window=2)


def test_one_cache_for_each_layer() -> None:
    growing, static = make_caches(2), make_caches(3, n_positions=4)
    assert [type(cache) for cache in growing] == [GrowingCache] * 2
    assert [type(cache) for cache in static] == [StaticCache] * 3
    assert growing[0] is not growing[1]


# --- places ---------------------------------------------------------------------------------------


def seen(n: int, *, window: int | None = None) -> list[Cache]:
    caches = make_caches(1, window=window)
    caches[0].update(torch.zeros(1, 1, n, 1), torch.zeros(1, 1, n, 1))
    return caches


def test_places_without_padding() -> None:
    places = place_tokens(torch.zeros(1, 3))
    assert places.positions.tolist() == places.key_positions.tolist() == [0, 1, 2]
    assert places.key_padding_mask is None
    places = place_tokens(torch.zeros(1, 2), caches=seen(3))
    assert places.positions.tolist() == [3, 4]
    assert places.key_positions.tolist() == [0, 1, 2, 3, 4]
    places = place_tokens(torch.zeros(1, 2), caches=seen(5, window=3))
    assert places.positions.tolist() == [5, 6]
    assert places.key_positions.tolist() == [3, 4, 5, 6]


def test_places_with_padding_on_the_left() -> None:
    real = torch.tensor([[False, False, True, True, True]])
    places = place_tokens(torch.zeros(1, 5), padding_mask=real)
    assert places.positions.tolist() == [[0, 0, 0, 1, 2]]
    places = place_tokens(torch.zeros(1, 1), padding_mask=real, caches=seen(4, window=3))
    assert places.positions.tolist() == [[2]]
    assert places.key_positions.tolist() == [[0, 1, 2]]
    places = place_tokens(torch.zeros(1, 1), padding_mask=real, caches=seen(4, window=4))
    assert places.key_padding_mask is not None
    assert places.key_padding_mask.tolist() == [[False, True, True, True]]


def test_a_mask_covers_the_whole_text() -> None:
    with pytest.raises(ValueError, match=r"\(1, 2\), expected \(1, 5\) for 3 seen and 2 new"):
        place_tokens(
            torch.zeros(1, 2), padding_mask=torch.ones(1, 2, dtype=torch.bool), caches=seen(3)
        )
    with pytest.raises(ValueError, match="must be boolean"):
        place_tokens(torch.zeros(1, 2), padding_mask=torch.ones(1, 2))
