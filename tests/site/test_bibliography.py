"""The bibliography file."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_repo import BIB

from flower_site import bibliography


def test_entries_are_read_as_plain_text(repo: Path) -> None:
    work = bibliography.load(repo).works["vaswani2017attention"]
    assert work.title == "Attention Is All You Need"
    assert work.authors == ("Ashish Vaswani", "Łukasz Kaiser")
    assert (work.year, work.venue) == ("2017", "NeurIPS")
    assert work.bibtex in BIB
    assert not list(bibliography.find_problems(repo))


def test_many_authors_are_cut(repo: Path) -> None:
    names = " and ".join(f"L{i}, F{i}" for i in range(8))
    (repo / "docs/references.bib").write_text(
        f"@misc{{x, title={{T}}, year=2020, author={{{names}}}}}"
    )
    assert bibliography.load(repo).works["x"].byline == "F0 L0、F1 L1、F2 L2 等"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("  title = {Neural Machine Translation},\n", "", 9, "文献 bahdanau2015neural 缺少 title"),
        ("  author = {Bahdanau, Dzmitry},\n", "", 9, "缺少 author"),
        ("@misc{bahdanau2015neural", "@misc{vaswani2017attention", 9, "出现了两次"),
        ("  year = {2015},", "  year {2015},", 12, "语法有误"),
    ],
)
def test_faults_are_reported_at_their_entry(
    repo: Path, old: str, new: str, line: int, message: str
) -> None:
    assert old in BIB
    (repo / "docs/references.bib").write_text(BIB.replace(old, new), encoding="utf-8")
    found = list(bibliography.find_problems(repo))
    assert [(str(p.path), p.line) for p in found] == [("docs/references.bib", line)], found
    assert message in found[0].message


def test_without_a_file_there_are_no_works(repo: Path) -> None:
    (repo / "docs/references.bib").unlink()
    assert bibliography.load(repo).works == {}
