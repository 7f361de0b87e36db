"""The command line as an editor meets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def flower(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    program = "from flower_site.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_check_counts_what_it_looked_at() -> None:
    done = flower("check")
    assert done.returncode == 0, done.stderr
    assert "已验证的公式" in done.stdout
    assert "问题 0" in done.stdout


def test_check_fails_with_place_and_remedy(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text("")
    card = tmp_path / "docs/cards/a.md"
    card.parent.mkdir(parents=True)
    card.write_text(
        "---\ntitle: 题\nsummary: 一句。\nstatus: draft\ntags: [注意力]\n---\n\n# 题\n\n"
        "/// formula | a\n    code: flower_transformer.attention.masked_softmax(z)\n"
        "    where:\n      z [m]: 分数\n$$\ny = 2z\n$$\n///\n",
        encoding="utf-8",
    )
    done = flower("check", folder=tmp_path)
    assert done.returncode == 1
    assert "docs/cards/a.md:15:5: 错误：公式与代码不一致" in done.stderr
    assert "改法：" in done.stderr
    assert "Traceback" not in done.stderr


def test_outside_a_repository(tmp_path: Path) -> None:
    done = flower("check", folder=tmp_path)
    assert done.returncode == 1
    assert "不在 Flower Research Notes 的仓库里" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_the_commands() -> None:
    done = flower("--help")
    assert done.returncode == 0
    assert "check" in done.stdout
    assert "new" in done.stdout
