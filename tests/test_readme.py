"""The READMEs show a formula block and an error: both must be what an editor really sees."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flower_site.formulas import FormulaBook

ROOT = Path(__file__).resolve().parents[1]
READMES = ("README.md", "README.zh.md")
CARD = "docs/cards/scaled-dot-product-attention.md"
SLUG = "scaled-dot-product-attention"


def example(readme: str, pattern: str) -> str:
    found = re.search(pattern, (ROOT / readme).read_text("utf-8"), re.M | re.S)
    assert found, f"{readme} has no such example"
    return found.group(1)


@pytest.mark.parametrize("readme", READMES)
def test_the_formula_block_is_the_cards(readme: str) -> None:
    block = example(readme, r"^````markdown\n(.*?)^````$")
    assert block in (ROOT / CARD).read_text("utf-8")


@pytest.mark.parametrize("readme", READMES)
def test_the_error_is_what_a_forgotten_root_brings(readme: str, tmp_path: Path) -> None:
    shown = example(readme, r"^```text\n(docs/cards/.*?)^```$").rstrip("\n")
    before, opening, after = (ROOT / CARD).read_text("utf-8").partition(f"/// formula | {SLUG}\n")
    page = tmp_path / CARD
    page.parent.mkdir(parents=True)
    (tmp_path / "src").symlink_to(ROOT / "src")
    page.write_text(before + opening + after.replace(r"\sqrt{d_k}", "d_k", 1), "utf-8")

    problem = FormulaBook.load(tmp_path).verdict(SLUG).problem

    assert problem is not None
    # The line may move with the card; everything else must be as shown.
    line = int(shown.split(":")[1])
    now = str(dataclasses.replace(problem, line=line))
    assert now == shown, f"the example in {readme} is out of date; it is now:\n{now}"


def test_the_program_runs_as_written(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(example("README.md", r"^```python\n(.*?)^```$"), "utf-8")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("step 2") == 8
    assert done.stdout.count("goes on") + done.stdout.count("translates") == 4
