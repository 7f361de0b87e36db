"""Index pages and the navigation."""

from flower_site.index_pages import Entry, expand_navigation, in_order, index_markdown, with_index

CARDS = [
    Entry("cards/b.md", "乙", order=2),
    Entry("cards/c.md", "丙"),
    Entry("cards/a.md", "甲", "一句话。", ("注意力",), "draft", 1),
]


def test_order_comes_before_title() -> None:
    assert [entry.title for entry in in_order(CARDS)] == ["甲", "乙", "丙"]


def test_the_list_names_title_summary_tags_and_status() -> None:
    markdown = index_markdown(CARDS, "cards")
    assert '**[甲](a.md)** <span class="flower-status flower-status--draft">草稿</span>' in markdown
    assert "一句话。" in markdown
    assert '<p class="flower-index__tags"><span>注意力</span></p>' in markdown
    assert index_markdown([], "cards") == "这里还没有内容。\n"


def test_a_paper_shows_authors_year_and_venue() -> None:
    matter = {"title": "A", "authors": ["甲", "乙", "丙"], "year": 2017, "venue": "NeurIPS"}
    assert Entry.from_matter("papers/a.md", matter).note == "甲、乙 等，2017，NeurIPS"


def test_the_list_stands_at_the_marker_or_at_the_end() -> None:
    assert with_index("a\n\n<!-- flower-index -->\n\nb", "L") == "a\n\nL\n\nb"
    assert with_index("a\n", "L") == "a\n\nL"


def test_a_folder_of_the_navigation_is_filled_in() -> None:
    nav = [{"首页": "index.md"}, {"卡片": "cards/"}, {"空": "topics/"}, "about.md"]
    assert expand_navigation(nav, {"cards": CARDS}) == [
        {"首页": "index.md"},
        {"卡片": ["cards/index.md", "cards/a.md", "cards/b.md", "cards/c.md"]},
        {"空": ["topics/index.md"]},
        "about.md",
    ]
