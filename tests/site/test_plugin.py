"""MkDocs builds a small site with the plugin; each planted fault stops the build with a message."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError

from flower_site.html_check import check_html
from flower_site.plugin import FlowerPlugin

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = Path(__file__).parent / "fixture_site"
CARD = "docs/cards/scaled.md"
NOTEBOOK = "notebooks/scaled.ipynb"


def make_repository(folder: Path) -> Path:
    """A small repository with the site's own configuration."""
    shutil.copytree(FIXTURE, folder)
    theme = "src/flower_site/theme"
    configuration = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert f"custom_dir: {theme}" in configuration
    configuration = configuration.replace(theme, (ROOT / theme).as_posix())
    (folder / "mkdocs.yml").write_text(configuration, encoding="utf-8")
    bindings = folder / "src/flower_site/bindings.py"
    bindings.parent.mkdir(parents=True)
    bindings.write_text("", encoding="utf-8")
    return folder


def commit(folder: Path) -> None:
    """Give the small repository a history, so that its pages have dates."""
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (["init", "--quiet"], ["add", "."], [*identity, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


def build(
    folder: Path, options: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    kept.pop("FLOWER_REPO_URL", None)
    kept.pop("SITE_URL", None)
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", *options],
        cwd=folder,
        env={**kept, "NO_MKDOCS_2_WARNING": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small site, built with an address and a repository."""
    folder = make_repository(tmp_path_factory.mktemp("built") / "repository")
    commit(folder)
    done = build(
        folder,
        SITE_URL="https://example.org/notes/",
        GITHUB_SERVER_URL="https://github.com",
        GITHUB_REPOSITORY="flower/notes",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def read(site: Path, page: str) -> str:
    return (site / page / "index.html").read_text("utf-8")


def test_the_built_html_is_in_order(built: Path) -> None:
    report = check_html(built)
    assert [str(fault) for fault in report.faults] == []
    assert all(report.checked.values())


def test_a_notebook_page(built: Path) -> None:
    page = read(built, "notebooks/scaled")
    assert '<h2 id="第一节">' in page
    assert 'href="#第二节"' in page
    assert 'class="admonition note"' in page
    assert "<strong>中文粗体</strong>" in page
    assert 'href="../../cards/scaled/"' in page
    assert 'id="first-result"' in page
    assert "katex-html" in page
    assert "jp-" not in page
    assert page.count("<style") <= 2
    article = page[page.index("<article") : page.index("</article>")]
    assert "#|" not in article
    assert (built / "notebooks/download/scaled.ipynb").read_bytes() == (
        FIXTURE / "notebooks/scaled.ipynb"
    ).read_bytes()
    assert 'href="../download/scaled.ipynb"' in page
    assert 'href="../../cards/scaled/">缩放点积注意力</a>' in page
    assert len(page.encode()) < 60_000


def test_the_search_index_is_clean(built: Path) -> None:
    index = json.loads((built / "search/search_index.json").read_text("utf-8"))
    assert "\\u200b" in index["config"]["separator"]
    entries = [doc for doc in index["docs"] if doc["location"].startswith("notebooks/scaled/")]
    assert len(entries) >= 3
    for entry in entries:
        text = entry["title"] + entry["text"]
        assert "¶" not in text
        assert "In [" not in text
        assert "Copied" not in text
        assert "下载" not in text.replace("\u200b", "")
        assert "device = start()" not in text
    title = next(doc["title"] for doc in index["docs"] if doc["location"] == "cards/scaled/")
    assert title.replace("\u200b", "") == "缩放点积注意力"
    assert "点积" in title.split("\u200b")  # a word of the glossary


def test_the_verification_page_and_its_data(built: Path) -> None:
    page = read(built, "verification")
    assert 'id="scaled"' in page
    assert "scaled_dot_product_attention(Q, K, V)" in page
    assert 'href="../cards/scaled/#formula-scaled"' in page
    data = json.loads((built / "verification.json").read_text("utf-8"))
    (formula,) = data["formulas"]
    assert formula["status"] == "checked"
    assert formula["draws"] >= 25
    assert 0 < max(formula["errors"].values()) < 1e-4
    assert data["environment"]["PyTorch"]


def test_index_pages_edit_links_meta_and_feed(built: Path) -> None:
    assert "点积除以根号" in read(built, "cards")
    assert "已发布" in read(built, "cards")
    assert "这里还没有内容" in read(built, "papers")
    assert "实验：缩放点积注意力" in read(built, "notebooks")
    card = read(built, "cards/scaled")
    assert 'href="https://github.com/flower/notes/edit/main/docs/cards/scaled.md"' in card
    notebook = read(built, "notebooks/scaled")
    assert 'href="https://github.com/flower/notes/edit/main/notebooks/scaled.ipynb"' in notebook
    assert "/edit/" not in read(built, "verification")  # generated: nothing to edit
    assert '<meta property="og:description" content="点积除以根号' in card
    assert '<link rel="canonical" href="https://example.org/notes/cards/scaled/">' in card
    assert "md-status--published" in card
    assert "md-source-file__fact" in card  # the date of the last change
    assert "md-source-file__fact" in notebook
    assert "cards/scaled/" in (built / "feed_rss_created.xml").read_text("utf-8")
    assert "notes/cards/scaled/" in (built / "sitemap.xml").read_text("utf-8")
    assert (built / "assets/katex/katex.min.css").is_file()
    assert len(list((built / "assets/katex/fonts").glob("*.woff2"))) >= 10
    assert not (built / "glossary-terms.txt").exists()


def test_formulas_in_titles_and_summaries(tmp_path: Path) -> None:
    """Index pages typeset them; tab, navigation, feed and search have a readable form."""
    folder = make_repository(tmp_path / "repository")
    card = folder / CARD
    text = card.read_text("utf-8")
    text = re.sub(r"(?m)^title: .*$", r"title: 为何除以 $\\sqrt{d_k}$", text)
    text = re.sub(r"(?m)^summary: .*$", r"summary: 再乘 $W^O$，当 $a < b$。", text)
    text = re.sub(r"(?m)^# .*$", r"# 为何除以 $\\sqrt{d_k}$", text, count=1)
    card.write_text(text + "\n## 根号 $\\sqrt{d_k}$\n", encoding="utf-8")
    commit(folder)
    done = build(folder, SITE_URL="https://example.org/notes/")
    assert done.returncode == 0, done.stdout + done.stderr
    site = folder / "site"
    page, index = read(site, "cards/scaled"), read(site, "cards")
    assert "<title>为何除以 √d_k - Flower Research Notes</title>" in page
    assert '<meta property="og:title" content="为何除以 √d_k">' in page
    assert '<meta name="description" content="再乘 Wᴼ，当 a < b。">' in page
    assert re.search(r'<span class="md-ellipsis">\s*为何除以 √d_k', index)  # the navigation
    article = index[index.index("<article") : index.index("</article>")]
    formulas = re.findall(r"<annotation[^>]*>(.*?)</annotation>", article)
    assert formulas == [r"\sqrt{d_k}", "W^O", "a &lt; b"]
    assert "$" not in re.sub(r"<annotation.*?</annotation>", "", article, flags=re.S)
    feed = (site / "feed_rss_created.xml").read_text("utf-8")
    assert "<title>为何除以 √d_k</title>" in feed
    assert "再乘 Wᴼ，当 a &lt; b。" in feed.replace("&amp;lt;", "&lt;")
    assert "katex" not in feed
    docs = json.loads((site / "search/search_index.json").read_text("utf-8"))["docs"]
    titles = [doc["title"].replace("\u200b", "") for doc in docs]
    assert "为何除以 √d_k" in titles
    assert "根号 √d_k" in titles
    assert check_html(site).faults == []


def test_without_an_address_there_are_no_dead_links(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repository")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    card = read(folder / "site", "cards/scaled")
    assert "/edit/" not in card
    assert "md-source" not in card
    assert "feed_rss" not in card
    assert check_html(folder / "site").faults == []


@pytest.mark.parametrize(
    "faults",
    [
        # What the sources alone show: all of it in one run.
        [
            (CARD, "status: published", "staus: published", "没有 staus 这个键"),
            (CARD, r"{\sqrt{d_k}}", "{d_k}", "docs/cards/scaled.md:20:"),
            (CARD, "#first-result", "#first-reslut", "是不是 first-result？"),
        ],
        # Links and anchors, in pages and in notebook cells.
        [
            (CARD, "#第二节", "#第三节", "does not contain an anchor '#第三节'"),
            (CARD, "scaled.ipynb)", "none.ipynb)", "none.ipynb' is not found"),
            (NOTEBOOK, "docs/cards/scaled.md", "docs/cards/none.md", "cards/none.md' is not found"),
        ],
        # A fence that swallows the cells after it.
        [(NOTEBOOK, "!!! note", "```\\n!!! note", "没有出现在页面上")],
    ],
)
def test_planted_faults_stop_the_build(
    tmp_path: Path, faults: list[tuple[str, str, str, str]]
) -> None:
    folder = make_repository(tmp_path / "repository")
    for path, old, new, _ in faults:
        text = (folder / path).read_text("utf-8")
        assert old in text
        (folder / path).write_text(text.replace(old, new, 1), encoding="utf-8")
    done = build(folder)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    for *_, message in faults:
        assert message in said
    assert "Traceback" not in said


@pytest.mark.parametrize("target", ["build", "offline"])
def test_the_builds_of_make_are_strict(tmp_path: Path, target: str) -> None:
    """``--quiet`` would switch strict off: MkDocs then counts no warning."""
    said = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    (options,) = re.findall(r"/mkdocs build (.*)", said)
    folder = make_repository(tmp_path / "repository")
    path = folder / CARD
    faults = "\n[没有这一页](none.md)，[没有这个锚点](#第三节)\n"
    path.write_text(path.read_text("utf-8") + faults, encoding="utf-8")
    # The configuration is strict as well; here the command alone has to be.
    configuration = folder / "mkdocs.yml"
    relaxed = configuration.read_text("utf-8").replace("strict: true\n", "", 1)
    configuration.write_text(relaxed, encoding="utf-8")
    done = build(folder, options.split(), FLOWER_OFFLINE=str(target == "offline").lower())
    assert done.returncode == 1, done.stdout + done.stderr
    assert "none.md' is not found" in done.stdout + done.stderr
    assert "there is no such anchor" in done.stdout + done.stderr


def test_an_error_in_a_notebooks_output_stops_the_build(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repository")
    path = folder / "notebooks/scaled.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    cell = next(cell for cell in notebook["cells"] if cell["id"] == "b")
    cell["outputs"] = [
        {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["…"]}
    ]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    done = build(folder)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "KeyError" in said
    assert "Traceback" not in said


def test_without_jieba_there_is_no_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    config = MkDocsConfig(config_file_path=str(tmp_path / "mkdocs.yml"))
    with pytest.raises(PluginError, match="没有 jieba"):
        FlowerPlugin().on_config(config)
