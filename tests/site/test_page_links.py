"""Links as they stand in the repository become links of the site."""

import pytest

from flower_site.page_links import site_link


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("docs/cards/a.md", "../../notebooks/a.ipynb#label", "../notebooks/a.ipynb#label"),
        ("docs/index.md", "../notebooks/a.ipynb", "notebooks/a.ipynb"),
        ("notebooks/a.ipynb", "../docs/cards/a.md#核心公式", "../cards/a.md#核心公式"),
        ("notebooks/a.ipynb", "b.ipynb", "b.ipynb"),
        # Already as the site wants them.
        ("docs/cards/a.md", "../notebooks/a.ipynb", "../notebooks/a.ipynb"),
        ("docs/cards/a.md", "../papers/b.md", "../papers/b.md"),
        ("docs/cards/a.md", "b.md", "b.md"),
        ("notebooks/a.ipynb", "../cards/a.md", "../cards/a.md"),
        # Not ours.
        ("docs/cards/a.md", "#核心公式", "#核心公式"),
        ("docs/cards/a.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("docs/cards/a.md", "mailto:a@example.org", "mailto:a@example.org"),
        ("docs/cards/a.md", "../../src/flower_site/plugin.py", "../../src/flower_site/plugin.py"),
    ],
)
def test_links(page: str, link: str, expected: str) -> None:
    assert site_link(link, page) == expected
