"""The search's words: short enough that every part of a term is found."""

from pathlib import Path

import jieba

from flower_site.search_words import read_terms, search_words, write_words


def test_a_term_that_holds_a_shorter_one_is_no_word() -> None:
    terms = ["掩码", "填充掩码", "注意力", "缩放点积注意力", "点积", "头", "值", "多头"]
    assert search_words(terms) == ["多头", "掩码", "注意力", "点积"]


def test_columns_and_comments_are_read_over() -> None:
    assert read_terms("点积 100000 n\n\n# 注\n掩码  # 掩蔽\n") == ["点积", "掩码"]


def test_terms_fall_apart_into_what_readers_type(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    terms = "掩码\n填充掩码\n注意力\n点积\n缩放点积注意力\n多头\n"
    (tmp_path / "docs/glossary-terms.txt").write_text(terms, encoding="utf-8")
    path = write_words(tmp_path)
    assert path is not None
    tokenizer = jieba.Tokenizer()
    with path.open("rb") as words:
        tokenizer.load_userdict(words)
    assert list(tokenizer.cut("缩放点积注意力")) == ["缩放", "点积", "注意力"]
    assert list(tokenizer.cut("因果掩码与填充掩码")) == ["因果", "掩码", "与", "填充", "掩码"]
    assert list(tokenizer.cut("多头注意力")) == ["多头", "注意力"]


def test_without_a_glossary_there_is_no_dictionary(tmp_path: Path) -> None:
    assert write_words(tmp_path) is None
