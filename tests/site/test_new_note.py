"""``flower new``: what it writes, and that it refuses rather than overwrites."""

import json
from pathlib import Path

import nbformat
import pytest

from flower_site.check import check_site
from flower_site.front_matter import check_front_matter
from flower_site.new_note import new_card, new_paper
from flower_site.problems import Problem


def test_a_card_and_its_notebook_name_each_other(tmp_path: Path) -> None:
    page, notebook = new_card(tmp_path, "layer-norm", "层归一化：与 “BatchNorm”")
    assert page == tmp_path / "docs/cards/layer-norm.md"
    assert notebook == tmp_path / "notebooks/layer-norm.ipynb"
    assert "/// notebook | layer-norm#first-result" in page.read_text("utf-8")
    cells = nbformat.read(notebook, as_version=4).cells
    assert cells[0].source.startswith("# 实验：层归一化：与 “BatchNorm”\n")
    assert "(../docs/cards/layer-norm.md)" in cells[0].source
    assert check_front_matter(tmp_path) == ([], 1)


def test_without_a_title_the_slug_stands_in(tmp_path: Path) -> None:
    page, _ = new_card(tmp_path, "rms-norm")
    assert "\n# rms-norm\n" in page.read_text("utf-8")


@pytest.mark.parametrize("slug", ["Layer-Norm", "层归一化", "a b", "../a", "a--b", "-a", "", "a.b"])
def test_a_bad_slug_is_refused_and_nothing_written(tmp_path: Path, slug: str) -> None:
    with pytest.raises(Problem, match="不能做文件名"):
        new_card(tmp_path, slug)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_notebook_keeps_the_page_from_being_written(tmp_path: Path) -> None:
    notebook = tmp_path / "notebooks/layer-norm.ipynb"
    notebook.parent.mkdir()
    notebook.write_text("mine", encoding="utf-8")
    with pytest.raises(Problem, match="已经存在"):
        new_card(tmp_path, "layer-norm")
    assert notebook.read_text("utf-8") == "mine"
    assert not (tmp_path / "docs").exists()


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_text

    def fail(self: Path, *args: object, **kwargs: object) -> int:
        if self.suffix == ".ipynb":
            raise OSError("disk full")
        return write(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="disk full"):
        new_card(tmp_path, "layer-norm")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_paper_known_to_the_bibliography_takes_its_data_from_there(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    bibliography = tmp_path / "docs/references.bib"
    entry = (
        "@misc{vaswani2017attention,\n  title = {Attention Is {All} You Need},\n"
        "  author = {Vaswani, Ashish and Shazeer, Noam},\n  year = {2017},\n"
        "  eprint = {1706.03762},\n}\n"
    )
    bibliography.write_text(entry, encoding="utf-8")
    page, notebook = new_paper(tmp_path, "1706.03762")
    text = page.read_text("utf-8")
    assert page.name == "vaswani2017attention.md"
    assert "title: Attention Is All You Need\n" in text
    assert 'authors: ["Ashish Vaswani", "Noam Shazeer"]' in text
    assert "year: 2017\n" in text
    assert 'arxiv: "1706.03762"' in text
    assert json.loads(notebook.read_text("utf-8"))["nbformat"] == 4
    assert bibliography.read_text("utf-8") == entry
    assert check_front_matter(tmp_path) == ([], 1)


def test_an_unknown_paper_gains_a_bibliography_entry(tmp_path: Path) -> None:
    created = new_paper(tmp_path, "2205.14135")
    assert [path.name for path in created] == [
        "arxiv-2205-14135.md",
        "arxiv-2205-14135.ipynb",
        "references.bib",
    ]
    assert "eprint = {2205.14135}" in created[2].read_text("utf-8")
    assert check_front_matter(tmp_path) == ([], 1)
    again = new_paper(tmp_path, "flash-attention")
    assert again[2].read_text("utf-8").count("@misc{") == 2


def test_what_is_created_passes_the_check_and_is_a_draft(tmp_path: Path) -> None:
    bindings = tmp_path / "src/flower_site/bindings.py"
    bindings.parent.mkdir(parents=True)
    bindings.write_text("", encoding="utf-8")
    new_card(tmp_path, "layer-norm", "层归一化")
    new_paper(tmp_path, "1607.06450")
    report = check_site(tmp_path)
    assert [str(problem) for problem in report.problems] == []
    assert report.counts["注明未验证的公式"] == 2
