"""A configuration is refused by name when its model is another."""

from __future__ import annotations

import pytest

from flower_transformer.convert.config_numbers import require


def test_supported_values_pass() -> None:
    require({"a": 1, "b": "x"}, a=1, b=("y", "x"))
    require({}, a=1)  # what is not said has the first value


def test_others_are_refused() -> None:
    with pytest.raises(ValueError, match="a is 2, supported is 1"):
        require({"a": 2}, a=1)
    with pytest.raises(ValueError, match="b is None, supported is 'x' or 'y'"):
        require({"b": None}, b=("x", "y"))
