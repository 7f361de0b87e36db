"""A seal fits a cell's code and outputs, however the file cuts them into lines."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from flower_site.seals import KEY, broken_seal, seal

OUTPUTS = [
    {"output_type": "stream", "name": "stdout", "text": "one\ntwo\n"},
    {"output_type": "display_data", "data": {"text/plain": "0.4", "x+json": {"value": [1]}}},
]


def cell() -> dict[str, Any]:
    outputs = copy.deepcopy(OUTPUTS)
    return {"source": "print(1)", "outputs": outputs, "metadata": {KEY: seal("print(1)", outputs)}}


def test_a_cell_as_it_was_run_fits() -> None:
    assert broken_seal(cell()) is None


def test_lines_on_disk_make_no_difference() -> None:
    cut = [{**OUTPUTS[0], "text": ["one\n", "two\n"]}, OUTPUTS[1]]
    assert seal("print(1)", cut) == seal("print(1)", OUTPUTS)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(source="print(2)"),
        lambda c: c["outputs"][0].update(text="one\nthree\n"),
        lambda c: c["outputs"][1]["data"].update({"text/plain": "0.5"}),
        lambda c: c["outputs"][1]["data"]["x+json"].update(value=[2]),
        lambda c: c["outputs"].pop(),
        lambda c: c.update(metadata={}),
    ],
)
def test_any_change_breaks_it(change: Any) -> None:
    changed = cell()
    change(changed)
    assert broken_seal(changed) is not None


def test_a_cell_that_was_never_run_has_none() -> None:
    assert broken_seal({"source": "x = 1", "outputs": [], "metadata": {}}) is None
