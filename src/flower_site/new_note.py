"""``flower new card|paper``: a page and its notebook from the templates, wired to each other."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

import yaml
from pybtex.database import BibliographyData, Entry, parse_string

from .problems import Problem
from .seals import KEY, seal

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ARXIV = re.compile(r"\d{4}\.\d{4,5}")


def new_card(root: Path, slug: str, title: str | None = None) -> list[Path]:
    """Create ``docs/cards/SLUG.md`` and ``notebooks/SLUG.ipynb``.

    Args:
        root: the repository.
        slug: lower-case words joined by hyphens.
        title: the card's title; without one the slug stands in for it.

    Returns:
        The files created, in the order page, notebook.

    Raises:
        Problem: the slug is not one, or a file is already there. Nothing is written then.
    """
    _check_slug(slug)
    return _create(_page_and_notebook(root, "cards", "card.md", slug, {"title": title or slug}))


def new_paper(root: Path, slug: str) -> list[Path]:
    """Create ``docs/papers/SLUG.md``, its notebook and, if need be, a bibliography entry.

    Args:
        root: the repository.
        slug: a slug, or an arXiv number such as ``1706.03762``. Where ``docs/references.bib`` knows
            the number or the slug, title, authors and year are taken from there; the page's slug is
            then the key's.

    Returns:
        The files created or changed: page, notebook, and ``references.bib`` if it gained an entry.

    Raises:
        Problem: as for :func:`new_card`.
    """
    arxiv = slug if _ARXIV.fullmatch(slug) else None
    bibliography = root / "docs" / "references.bib"
    text = bibliography.read_text(encoding="utf-8") if bibliography.is_file() else ""
    key, entry = _find_entry(parse_string(text, "bibtex"), slug)
    if arxiv is not None:
        words = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-") if entry else ""
        slug = words or f"arxiv-{arxiv.replace('.', '-')}"
    _check_slug(slug)
    key = key or slug
    fields = entry.fields if entry else {}
    arxiv = arxiv or (fields.get("eprint") if _ARXIV.fullmatch(fields.get("eprint", "")) else None)
    people = entry.persons.get("author", []) if entry else []
    names = [" ".join([*person.first_names, *person.last_names]) for person in people]
    values = {
        "title": re.sub(r"[{}]", "", fields.get("title", slug)),
        "authors": json.dumps(names or ["待写"], ensure_ascii=False),
        "year": str(fields.get("year", 2000)),
        "arxiv": f'"{arxiv}"' if arxiv else "null",
        "bibkey": key,
    }
    contents = _page_and_notebook(root, "papers", "paper.md", slug, values)
    if entry is None:
        known = {"title": slug, "author": "待写", "year": "2000"}
        if arxiv:
            known["eprint"] = arxiv
        lines = "".join(f"  {name} = {{{value}}},\n" for name, value in known.items())
        stub = f"@misc{{{key},\n{lines}}}\n"
        before = text.rstrip("\n")
        contents[bibliography] = f"{before}\n\n{stub}" if before else stub
    return _create(contents, may_exist={bibliography})


def _check_slug(slug: str) -> None:
    if not _SLUG.fullmatch(slug):
        raise Problem(
            f"{slug!r} 不能做文件名",
            path="flower new",
            remedy="用小写英文单词、数字和连字符，例如 scaled-dot-product-attention",
        )


def _find_entry(bibliography: BibliographyData, name: str) -> tuple[str, Entry | None]:
    """The entry whose key or arXiv number is ``name``."""
    for key, entry in bibliography.entries.items():
        if name in (key, entry.fields.get("eprint")):
            return key, entry
    return "", None


def _page_and_notebook(
    root: Path, folder: str, template: str, slug: str, values: dict[str, str]
) -> dict[Path, str]:
    """Path → content of the two files. The title is escaped for the place where it lands."""
    title = values["title"]
    page = _template(template)
    head, body = page.split("\n---\n", 1)
    quoted = yaml.safe_dump(title, allow_unicode=True, width=10_000).removesuffix("\n...\n").strip()
    head = _fill(head, {**values, "slug": slug, "title": quoted})
    body = _fill(body, {**values, "slug": slug})
    notebook = _fill(
        _template("note.ipynb"),
        {
            "slug": slug,
            "folder": folder,
            "title": json.dumps(title, ensure_ascii=False)[1:-1],
        },
    )
    return {
        root / "docs" / folder / f"{slug}.md": f"{head}\n---\n{body}",
        root / "notebooks" / f"{slug}.ipynb": _sealed(notebook),
    }


def _sealed(notebook: str) -> str:
    """The template's notebook with the seals that the runner would give it."""
    data = json.loads(notebook)
    for cell in data["cells"]:
        if cell.get("outputs"):
            cell["metadata"][KEY] = seal("".join(cell["source"]), cell["outputs"])
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _template(name: str) -> str:
    return (files("flower_site") / "templates" / name).read_text(encoding="utf-8")


def _fill(template: str, values: dict[str, str]) -> str:
    """Replace each ``{{name}}``; an unknown name is a fault of the template."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], template)


def _create(contents: dict[Path, str], may_exist: set[Path] | None = None) -> list[Path]:
    """Write all files or none."""
    may_exist = may_exist or set()
    for path in contents:
        if path.exists() and path not in may_exist:
            raise Problem(f"{path.name} 已经存在", path=path, remedy="换一个名字，或编辑已有的文件")
    before = {path: path.read_text("utf-8") for path in may_exist if path.exists()}
    written: list[Path] = []
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            written.append(path)
            path.write_text(content, encoding="utf-8")
    except OSError:
        for path in written:
            if path in before:
                path.write_text(before[path], encoding="utf-8")
            else:
                path.unlink(missing_ok=True)
        raise
    return written
