"""Each fault that an editor can make stops the check of the real site."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flower_site.check import check_site
from flower_site.problems import Problem

ROOT = Path(__file__).parents[2]
CARD = "docs/cards/scaled-dot-product-attention.md"
FORMULA = r"\mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for folder in ("docs", "notebooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")
    return tmp_path


def replace(path: Path, old: str, new: str, after: str = "") -> int:
    """Replaces the first occurrence after some text; gives its line."""
    text = path.read_text(encoding="utf-8")
    at = text.find(old, text.index(after))
    assert at >= 0, f"{path.name} has no {old!r} any more: choose another place for this fault"
    path.write_text(text[:at] + new + text[at + len(old) :], encoding="utf-8")
    return text[:at].count("\n") + 1


def edit_formula(site: Path, edit: str) -> int:
    """Makes one of the eight edits in the block of the attention formula."""
    block = "/// formula | scaled-dot-product-attention"
    return replace(site / CARD, f"= {FORMULA}", f"= {EIGHT_EDITS[edit]}", after=block)


def problems(site: Path) -> list[Problem]:
    return check_site(site).problems


def test_the_site_as_it_stands_is_clean(site: Path) -> None:
    report = check_site(site)
    assert [str(problem) for problem in report.problems] == []
    assert all(report.counts[kind] > 0 for kind in ("公式块", "已验证的公式", "页面与笔记单元"))


EIGHT_EDITS = {
    "root dropped": FORMULA.replace(r"\sqrt{d_k}", "d_k"),
    "d_k to d_v": FORMULA.replace(r"\sqrt{d_k}", r"\sqrt{d_v}"),
    "QK^T to KQ^T": FORMULA.replace(r"QK^{\top}", r"KQ^{\top}"),
    "V dropped": FORMULA.removesuffix("V"),
    "V inside the softmax": r"\mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}}V\right)",
    "root multiplied": r"\mathrm{softmax}\left(QK^{\top}\sqrt{d_k}\right)V",
    "softmax dropped": r"\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V",
    "Q and K swapped": FORMULA.replace(r"QK^{\top}", r"Q^{\top}K"),
}


@pytest.mark.parametrize("edit", EIGHT_EDITS)
def test_an_edit_of_the_published_formula(site: Path, edit: str) -> None:
    line = edit_formula(site, edit)
    (found,) = [p for p in problems(site) if (str(p.path), p.line) == (CARD, line)]
    assert found.column
    assert "^" in str(found)
    assert found.remedy
    assert "没有经过验证" not in found.message  # the reader's own words, not a missing restatement


@pytest.mark.parametrize("printed", [r"\sqrt d_k", r"\sqrt{d}_k"])
def test_a_formula_that_is_printed_otherwise_than_it_is_read_is_an_error(
    site: Path, printed: str
) -> None:
    """The reader knows what is meant and only warns; the page would show a wrong formula."""
    block = "/// formula | scaled-dot-product-attention"
    line = replace(site / CARD, r"\sqrt{d_k}", printed, after=block)
    (found,) = [p for p in problems(site) if (str(p.path), p.line) == (CARD, line)]
    assert "the root over d alone" in found.message
    assert found.remedy == r"write \sqrt{d_{k}}"
    assert (found.text or "")[(found.column or 0) - 1 :].startswith(printed)


def drop_label(site: Path) -> tuple[str, ...]:
    replace(site / "notebooks/scaled-dot-product-attention.ipynb", "#| label: ", "#| lable: ")
    return ("docs/", "notebooks/")


def changed_output(site: Path) -> str:
    replace(site / "notebooks/scaled-dot-product-attention.ipynb", "0.707", "0.717", '"outputs"')
    return "notebooks/scaled-dot-product-attention.ipynb"


def changed_code(site: Path) -> str:
    replace(site / "notebooks/attention-masks.ipynb", "causal_mask(6", "causal_mask(7")
    return "notebooks/attention-masks.ipynb"


def unknown_record(site: Path) -> str:
    page = site / "docs/cards/attention-masks.md"
    page.write_text(
        page.read_text(encoding="utf-8") + "\n约 {nb}`attention-masks#no-such-name:.2f`。\n",
        encoding="utf-8",
    )
    return "docs/cards/attention-masks.md"


def dead_code_path(site: Path) -> str:
    replace(
        site / CARD, "attention.scaled_dot_product_attention(Q", "attention.scaled_dot_attention(Q"
    )
    return CARD


def undeclared_symbol(site: Path) -> str:
    replace(site / CARD, "      V [m, d_v]: ", "      U [m, d_v]: ")
    return CARD


def missing_notebook(site: Path) -> str:
    (site / "notebooks/multi-head-attention.ipynb").unlink()
    return "docs/"


def unknown_citation(site: Path) -> str:
    replace(site / CARD, "[@vaswani2017attention]", "[@vaswani2071attention]")
    return CARD


def unknown_status(site: Path) -> str:
    replace(site / CARD, "status: published", "status: publised")
    return CARD


def unknown_equation(site: Path) -> str:
    page = site / CARD
    page.write_text(
        page.read_text(encoding="utf-8") + "\n见 {eq}`no-such-formula`。\n", encoding="utf-8"
    )
    return CARD


def bad_latex(site: Path) -> str:
    page = site / CARD
    page.write_text(
        page.read_text(encoding="utf-8") + "\n行内 $\\frac{a$ 坏了。\n", encoding="utf-8"
    )
    return CARD


@pytest.mark.parametrize(
    "plant",
    [
        drop_label, changed_output, changed_code, unknown_record, dead_code_path,
        undeclared_symbol, missing_notebook,
        unknown_citation, unknown_status, unknown_equation, bad_latex,
    ],
)  # fmt: skip
def test_a_planted_fault_is_found_with_file_line_and_remedy(
    site: Path, plant: Callable[[Path], str | tuple[str, ...]]
) -> None:
    where = plant(site)
    found = problems(site)
    assert found
    for problem in found:
        assert str(problem.path).startswith(where)
        assert problem.line
        assert problem.remedy


def test_the_error_that_the_home_page_shows_is_what_the_check_says(site: Path) -> None:
    home = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    shown = home.split("```text\n")[1].split("```")[0].splitlines()
    edit_formula(site, "root dropped")
    said = "\n\n".join(str(problem) for problem in problems(site)).splitlines()
    first = next(k for k, line in enumerate(said) if line.startswith(shown[0]))
    assert said[first + 1 : first + len(shown)] == shown[1:]
