"""Look at the attention weights of a whole model while it runs, without changing what it computes.

Legend: B batch, H heads, T query length, S key length.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from flower_transformer.attention import MultiHeadAttention


@contextmanager
def attention_maps(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the weights of every `MultiHeadAttention` in a model that runs inside the context.

        with attention_maps(model) as maps:
            model(tokens)
        maps["encoder.layers.0.attention"]  # (B, H, T, S)

    Args:
        model: any module; if it is an attention itself, its name is "".

    Yields:
        A dictionary from the name of each attention module to its weights (B, H, T, S), detached,
        in the order in which they run. One that runs again (for the next token) replaces its entry.
    """
    maps: dict[str, Tensor] = {}
    wanted: dict[nn.Module, bool] = {}  # whether the model itself asked for the weights
    names: dict[nn.Module, str] = {
        m: name for name, m in model.named_modules() if isinstance(m, MultiHeadAttention)
    }

    def ask(module: nn.Module, args: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        wanted[module] = options.get("return_weights", False)
        return args, options | {"return_weights": True}

    def keep(module: nn.Module, args: Any, result: tuple[Tensor, Tensor]) -> Any:
        name = names[module]
        maps.pop(name, None)  # the newest goes last
        maps[name] = result[1].detach()
        return result if wanted[module] else result[0]

    hooks = [module.register_forward_pre_hook(ask, with_kwargs=True) for module in names]
    hooks += [module.register_forward_hook(keep) for module in names]
    try:
        yield maps
    finally:
        for hook in hooks:
            hook.remove()
