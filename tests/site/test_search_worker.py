"""The repairs fit the installed theme, and a theme they don't fit is noticed."""

from pathlib import Path

import material
import pytest

from flower_site.search_worker import REPAIRS, repair_search_worker, repaired

WORKERS = Path(material.__file__).parent / "templates/assets/javascripts/workers"


def test_the_installed_theme_still_needs_both_repairs() -> None:
    (worker,) = WORKERS.glob("search.*.js")
    script = repaired(worker.read_text("utf-8"))
    for old, new in REPAIRS:
        assert old not in script
        assert new in script


def test_a_changed_theme_is_noticed() -> None:
    with pytest.raises(LookupError, match="0 times"):
        repaired("something else")


def test_the_worker_of_a_site_is_repaired(tmp_path: Path) -> None:
    folder = tmp_path / "assets/javascripts/workers"
    folder.mkdir(parents=True)
    (folder / "search.0.min.js").write_text(";".join(old for old, _ in REPAIRS), encoding="utf-8")
    assert repair_search_worker(tmp_path) == 1
    assert (folder / "search.0.min.js").read_text("utf-8") == ";".join(new for _, new in REPAIRS)
