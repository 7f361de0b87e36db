"""Tiny random models of transformers, and the comparison of logits and gradients with ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from parity import BOUNDS, draw
from torch import nn

from flower_transformer.convert.correspondence import Correspondence, export_weights, import_weights
from flower_transformer.generate import generate

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

    transformers.logging.set_verbosity_error()

DTYPES = (torch.float32, torch.float64)


def make_peer(kind: type[nn.Module], config: object, dtype: torch.dtype, seed: int) -> nn.Module:
    """One of their models with random weights, in evaluation mode."""
    config._attn_implementation = "sdpa"  # type: ignore[attr-defined]  # eager rounds to float32
    model = kind(config)
    draw(model, seed)
    return model.to(dtype).eval()


def assert_parity(
    ours: nn.Module,
    theirs: nn.Module,
    correspondence: Correspondence,
    outputs: Callable[[nn.Module], torch.Tensor],
    their_outputs: Callable[[nn.Module], torch.Tensor],
    dtype: torch.dtype,
) -> None:
    """Equal outputs, and equal gradients of a random function of them for every weight."""
    bound = BOUNDS[dtype]
    a, b = outputs(ours), their_outputs(theirs)
    torch.testing.assert_close(a, b, rtol=bound, atol=bound)
    weights = torch.randn(a.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for logits in (a, b):
        (logits * weights.to(dtype)).sum().backward()

    their_gradients = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    # rounding is in proportion to the largest number on the way
    scale = max(1.0, *(float(gradient.abs().max()) for gradient in their_gradients.values()))
    carrier = type(ours)(ours.config).to(dtype)  # brings our gradients into their shapes
    with torch.no_grad():
        for target, parameter in zip(carrier.parameters(), ours.parameters(), strict=True):
            target.copy_(torch.zeros(()) if parameter.grad is None else parameter.grad)
    gradients = export_weights(carrier, correspondence)
    assert set(their_gradients) <= set(gradients)
    for name, gradient in gradients.items():
        if name not in correspondence.aliases:  # a tied weight has one gradient
            expected = their_gradients.get(name, torch.zeros_like(gradient))
            torch.testing.assert_close(gradient, expected, rtol=bound, atol=bound * scale)


def assert_round_trip(ours: nn.Module, theirs: nn.Module, correspondence: Correspondence) -> None:
    """From theirs to ours and back: the same names, the same numbers, the same count."""
    state = theirs.state_dict()
    import_weights(ours, state, correspondence)
    back = export_weights(ours, correspondence)
    assert set(back) == set(state)
    assert all(torch.equal(back[name], state[name]) for name in state)
    theirs.load_state_dict(back)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


def assert_same_text(ours: nn.Module, theirs: nn.Module, seed: int) -> None:
    """The same tokens from greedy decoding with a cache, in a batch padded on the left."""
    generator = torch.Generator().manual_seed(seed)
    prompt = torch.randint(2, 13, (3, 6), generator=generator)
    real = torch.arange(6) >= torch.tensor([[0], [2], [5]])
    text = theirs.generate(
        prompt,
        attention_mask=real.long(),
        max_new_tokens=20,
        do_sample=False,
        eos_token_id=1,
        pad_token_id=0,
        use_cache=True,
    )
    new = generate(ours, prompt, n_new=20, prompt_mask=real, eos_token=1, pad_token=0)
    assert new.tolist() == text[:, 6:].tolist()
