"""The page 怎样写可验证的公式 says what the reader says: its wrong examples are run one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from flower_formula import FormulaError, check

PAGE = Path(__file__).parents[2] / "docs/topics/writing-formulas.md"


def wrong_examples() -> list[tuple[str, str, str]]:
    text = PAGE.read_text(encoding="utf-8").split("```text\n")[1].split("```")[0]
    examples = []
    for entry in text.strip().split("\n\n"):
        where, latex, said = entry.split("\n")
        examples.append((where.removeprefix("where: "), latex, said.removeprefix("→ ")))
    return examples


@pytest.mark.parametrize(("where", "latex", "said"), wrong_examples())
def test_a_wrong_example_says_what_the_page_says(where: str, latex: str, said: str) -> None:
    with pytest.raises(FormulaError) as caught:
        check(latex, lambda *arguments: arguments[0], where.split("；"))
    assert said in caught.value.message


def test_the_page_has_all_its_examples() -> None:
    assert len(wrong_examples()) == 10


def test_the_block_that_is_shown_is_the_block_that_is_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text.split("````markdown\n")[1].split("````")[0]
    assert text.count(shown) == 2
