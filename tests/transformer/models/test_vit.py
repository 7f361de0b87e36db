"""ViT: patches by hand, sizes, and what the class depends on."""

from __future__ import annotations

import pytest
import torch
from parity import draw

from flower_transformer.models.vit import PatchEmbedding, ViT, ViTConfig

CONFIG = ViTConfig(6, 2, 3, 8, 2, 2, 16, n_channels=2)


def test_patches_by_hand() -> None:
    patches = PatchEmbedding(1, 2, 4)
    with torch.no_grad():
        patches.project.weight.copy_(torch.eye(4).reshape(4, 1, 2, 2))
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert patches(image)[0].tolist() == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
        [8, 9, 12, 13],
        [10, 11, 14, 15],
    ]


def test_sizes() -> None:
    assert CONFIG.n_patches == 9
    assert ViTConfig.base16().n_patches == 196
    assert ViTConfig.huge14(n_classes=7).n_classes == 7
    with pytest.raises(ValueError, match="image_size 7, patch_size 2"):
        ViTConfig(7, 2, 3, 8, 1, 1, 8)
    with pytest.raises(ValueError, match=r"\(B, 2, 6, 6\), got \(1, 3, 6, 6\)"):
        ViT(CONFIG)(torch.zeros(1, 3, 6, 6))


def test_the_class_depends_on_every_pixel_and_place() -> None:
    model = ViT(CONFIG)
    draw(model)
    images = torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    images.requires_grad_()
    logits = model(images)
    assert logits.shape == (1, 3)
    (gradient,) = torch.autograd.grad(logits.square().sum(), images)
    assert (gradient != 0).all()
    # without positions a model could not tell these two apart
    turned = images.flip(-1)
    assert not torch.allclose(model(turned), logits)


def test_a_new_model_prefers_no_class() -> None:
    assert not ViT(CONFIG)(torch.randn(2, 2, 6, 6)).any()
