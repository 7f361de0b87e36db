"""Breaking the code turns the formula check red *and* a notebook red: no fault hides from both."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# file below src/flower_transformer, what stands there, what a mistake would put there
BREAKS = {
    "no scale": ("scaled_dot_product.py", "1.0 / math.sqrt(query.shape[-1]) if", "1.0 if"),
    "wrong axis": ("scaled_dot_product.py", "scores.softmax(dim=-1)\n", "scores.softmax(dim=-2)\n"),
    "mask polarity": (
        "scaled_dot_product.py",
        "masked_fill(~may_attend, f",
        "masked_fill(may_attend, f",
    ),
}


@pytest.fixture(params=BREAKS)
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for folder in ("docs", "notebooks", "src"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    name, old, new = BREAKS[request.param]
    path = tmp_path / "src/flower_transformer" / name
    code = path.read_text(encoding="utf-8")
    assert old in code, f"{name} has no {old!r} any more: choose another place for this fault"
    path.write_text(code.replace(old, new, 1), encoding="utf-8")
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip


def test_check_and_notebook_are_red(broken: Path) -> None:
    check = run(broken, "-c", "from flower_site.cli import main; main()", "check")
    assert check.returncode == 1, check.stdout
    assert "公式与代码不一致" in check.stderr

    notebooks = run(
        broken, "-m", "pytest", "--nbval", "notebooks", "-q", "-x", "-p", "no:cacheprovider"
    )
    assert notebooks.returncode == 1, notebooks.stdout[-2000:]
    assert "failed" in notebooks.stdout
