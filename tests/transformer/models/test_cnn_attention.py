"""CBAM by hand, its properties, and a classifier that learns with it."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parity import draw, normal

from flower_transformer.models.cnn_attention import (
    CBAM,
    CNNAttention,
    CNNAttentionConfig,
    channel_attention,
    spatial_attention,
)


def test_channel_attention_by_hand() -> None:
    # channel 0: mean 2, maximum 4; channel 1: mean -1, maximum 1
    x = torch.tensor([[[[0.0, 4.0]], [[-3.0, 1.0]]]])
    w_0, w_1 = torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0], [0.0]])
    # W_0 gives 1 and 5, W_1 adds them up for channel 0 and ignores channel 1
    weights = channel_attention(x, w_0, w_1).flatten().tolist()
    assert weights == pytest.approx([torch.tensor(6.0).sigmoid().item(), 0.5])
    # ReLU stands inside
    weights = channel_attention(x, -w_0, w_1).flatten().tolist()
    assert weights == pytest.approx([0.5, 0.5])


def test_spatial_attention_by_hand() -> None:
    x = torch.tensor([[[[0.0, 4.0]], [[2.0, -2.0]]]])  # means 1, 1; maxima 2, 4
    mean, maximum = torch.zeros(1, 2, 3, 3), torch.zeros(1, 2, 3, 3)
    mean[0, 0, 1, 1] = maximum[0, 1, 1, 1] = 1
    sigmoid = torch.sigmoid
    torch.testing.assert_close(spatial_attention(x, mean), sigmoid(torch.tensor([[[[1.0, 1.0]]]])))
    torch.testing.assert_close(
        spatial_attention(x, maximum), sigmoid(torch.tensor([[[[2.0, 4.0]]]]))
    )
    right = torch.zeros(1, 2, 3, 3)
    right[0, 1, 1, 2] = 1  # the neighbour on the right; beyond the border there is 0
    torch.testing.assert_close(spatial_attention(x, right), sigmoid(torch.tensor([[[[4.0, 0.0]]]])))


@given(
    n=st.integers(1, 3),
    reduction=st.integers(1, 2),
    k=st.sampled_from([1, 3, 7]),
    h=st.integers(1, 5),
    w=st.integers(1, 5),
)
def test_channels_come_first(n: int, reduction: int, k: int, h: int, w: int) -> None:
    module = CBAM(n * reduction, reduction=reduction, kernel_size=k).double()
    draw(module)
    x = normal(2, n * reduction, h, w)
    once = channel_attention(x, module.w_0, module.w_1) * x
    torch.testing.assert_close(module(x), spatial_attention(once, module.kernel) * once)
    assert (module(x).abs() <= x.abs()).all()


def test_errors_name_both_values() -> None:
    with pytest.raises(ValueError, match="n_channels 6, reduction 4"):
        CBAM(6, reduction=4)
    with pytest.raises(ValueError, match="must be odd, got 2"):
        CBAM(4, reduction=2, kernel_size=2)
    with pytest.raises(ValueError, match=r"C = 3: w_0 \(1, 2\), w_1 \(2, 1\)"):
        channel_attention(torch.zeros(1, 3, 2, 2), torch.zeros(1, 2), torch.zeros(2, 1))
    with pytest.raises(ValueError, match=r"k odd, got \(1, 2, 4, 4\)"):
        spatial_attention(torch.zeros(1, 3, 2, 2), torch.zeros(1, 2, 4, 4))


def test_it_learns_where_a_spot_is() -> None:
    """90 % of the images come out right; the margin: with six seeds each right class had a
    probability above 0.99.
    """
    torch.manual_seed(0)
    model = CNNAttention(CNNAttentionConfig(n_classes=2, widths=(8, 8), kernel_size=3))
    images = 0.1 * torch.randn(64, 1, 8, 8)
    labels = torch.arange(64) % 2  # a bright row or a bright column
    images[labels == 0, :, 3, :] += 1
    images[labels == 1, :, :, 3] += 1
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(30):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())
    model.eval()
    assert (model(images).argmax(-1) == labels).float().mean() >= 0.9
