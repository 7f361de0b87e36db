"""The ``code:`` line: a call, and nothing else."""

from __future__ import annotations

import pytest

from flower_formula.call import read_call
from flower_formula.errors import CallError

PACKAGES = ("flower_transformer",)
PATH = "flower_transformer.attention.scaled_dot_product_attention"


def test_arguments_are_symbols_numbers_and_keywords() -> None:
    call = read_call(
        PATH + r"(Q, W^Q, \gamma, gamma, scale=0.5, causal=True, path=None)[0]",
        PACKAGES,
        ["Q", "W^Q", "gamma"],
    )
    assert [a.symbol for a in call.arguments] == ["Q", "W^Q", "gamma", "gamma", None, None, None]
    assert [a.keyword for a in call.arguments[4:]] == ["scale", "causal", "path"]
    assert call.item == 0


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("flower_transformer.attention.scaled_dot_product_atention(Q)", "has no scaled_dot", 29),
        ("flower_transformer.attentoin.f(Q)", "has no attentoin", 19),
        ("os.system(Q)", "outside the packages", 0),
        ("flower_transformerx.f(Q)", "outside the packages", 0),
        ("flower_transformer.masks.torch.save(Q)", "comes from torch", 25),
        ("flower_transformer.attention.__builtins__(Q)", "is private", 29),
        (PATH + "(P)", "undeclared symbol P", 58),
        (PATH + "(Q + Q)", "neither a declared symbol nor a number", 58),
        (PATH + "(f(Q))", "neither a declared symbol nor a number", 58),
        (PATH + "(Q, )", "an empty argument", 61),
        (PATH + "(scale=1, Q)", "positional argument after a keyword", 67),
        (PATH, "this is no call", 0),
        (PATH + "(Q); print(1)", "neither a declared symbol", 58),
        (PATH + "(Q)[-1]", "this is no call", 0),
    ],
)  # fmt: skip
def test_everything_else_is_refused(text: str, message: str, place: int) -> None:
    with pytest.raises(CallError) as caught:
        read_call(text, PACKAGES, ["Q"])
    assert message in caught.value.message
    assert caught.value.span[0] == place


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(CallError) as caught:
        read_call("flower_transformer.attention.scaled_dot_product_atention(Q)", PACKAGES, ["Q"])
    assert caught.value.hint == "did you mean scaled_dot_product_attention?"
