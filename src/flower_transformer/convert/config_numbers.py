"""Configurations of Hugging Face as plain numbers: the content of a ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def require(numbers: Mapping[str, Any], **supported: Any) -> None:
    """Refuse a configuration whose model ours is not.

    Args:
        numbers: their configuration.
        supported: for each name the one value that our model has, or a tuple of values; a name
            that the configuration lacks is taken to have the first.

    Raises:
        ValueError: a value is another.
    """
    for name, values in supported.items():
        values = values if isinstance(values, tuple) else (values,)
        value = numbers.get(name, values[0])
        if value not in values:
            expected = " or ".join(repr(v) for v in values)
            raise ValueError(f"{name} is {value!r}, supported is {expected}")
