"""Two repairs of the theme's search, without which Chinese queries lose their last word.

The theme cuts a query such as 缩放点积 into words of the index. It never tries a word that ends
with the query (掩码 becomes 掩, and 归一化 becomes 一), and it writes two stars after all words but
the last, which the result list then reports as missing (缺少：缩放*) and does not mark.
"""

from __future__ import annotations

from pathlib import Path

REPAIRS = (
    ("o=s+1;o<t.length;o++)t.slice(s,o)in e", "o=s+1;o<=t.length;o++)t.slice(s,o)in e"),
    ('this.index.invertedIndex)].join("* ")', 'this.index.invertedIndex)].join(" ")'),
)


def repaired(script: str) -> str:
    """The search worker with both repairs.

    Raises:
        LookupError: a place is not there exactly once; the theme has changed, look whether it still
            needs the repair.
    """
    for old, new in REPAIRS:
        if script.count(old) != 1:
            raise LookupError(f"the theme's search worker has {script.count(old)} times {old!r}")
        script = script.replace(old, new)
    return script


def repair_search_worker(site: Path) -> int:
    """Repair the worker of the built site; how many files were repaired."""
    workers = sorted((site / "assets/javascripts/workers").glob("search.*.js"))
    for worker in workers:
        worker.write_text(repaired(worker.read_text(encoding="utf-8")), encoding="utf-8")
    return len(workers)
