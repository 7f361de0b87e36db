"""What notebooks publish: records and tables, in the form that pages read."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from flower_transformer import notebook
from flower_transformer.notebook import RECORD_MIME, record, table


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    bundles: list[dict[str, Any]] = []
    monkeypatch.setattr(notebook, "display", lambda bundle, raw: bundles.append(bundle))
    return bundles


@pytest.mark.parametrize(
    ("value", "digits", "kept", "text"),
    [
        (3.98123, 3, 3.98, "ratio = 3.98"),
        (1048576, 3, 1048576, "ratio = 1048576"),
        (0.000123456, 2, 0.00012, "ratio = 0.00012"),
        (123456.0, 3, 123000.0, "ratio = 123000.0"),
        (-0.0, 3, 0.0, "ratio = 0.0"),
        (True, 3, True, "ratio = True"),
        (torch.tensor(2.5), 3, 2.5, "ratio = 2.5"),
        (torch.tensor([7]), 3, 7, "ratio = 7"),
    ],
)
def test_record(
    shown: list[dict[str, Any]], value: float, digits: int, kept: float, text: str
) -> None:
    record("ratio", value, digits=digits)
    assert shown == [{"text/plain": text, RECORD_MIME: {"name": "ratio", "value": kept}}]
    assert str(shown[0][RECORD_MIME]["value"]) == str(kept)  # -0.0 == 0.0, but reads otherwise


@pytest.mark.parametrize("name", ["Ratio", "two words", "a--b", "-a", "a_b", "1a", ""])
def test_malformed_name(name: str) -> None:
    with pytest.raises(ValueError, match="named like-this"):
        record(name, 1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_record_must_be_finite(value: float) -> None:
    with pytest.raises(ValueError, match=f"'ratio' must be finite, got {value}"):
        record("ratio", value)


def test_digits_must_be_positive() -> None:
    with pytest.raises(ValueError, match="got 0"):
        record("ratio", 1.0, digits=0)


def test_table(shown: list[dict[str, Any]]) -> None:
    table([["词 <1>", 1, -0.0001, True]], header=["名", "n", "x", "有限"], decimals=2)
    assert shown[0]["text/plain"] == "    名  n     x  有限\n词 <1>  1  0.00    是"
    assert shown[0]["text/html"] == (
        '<table><thead><tr><th scope="col">名</th><th scope="col">n</th><th scope="col">x</th>'
        '<th scope="col">有限</th></tr></thead><tbody><tr><th scope="row">词 &lt;1&gt;</th>'
        "<td>1</td><td>0.00</td><td>是</td></tr></tbody></table>"
    )


def test_table_with_a_short_row() -> None:
    with pytest.raises(ValueError, match="a row has 1 cells, the header has 2"):
        table([["a"]], header=["名", "值"])


def test_start_is_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLOWER_DEVICE", raising=False)
    threads = torch.get_num_threads()
    try:
        device = notebook.start(seed=5)
        first = torch.randn(3)
        notebook.start(seed=5)
        assert device == torch.device("cpu")
        assert torch.equal(first, torch.randn(3))
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(threads)
