"""The processes that evaluate formulas: answers in order, crashes named, changed code run anew."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from flower_formula import Disagreement, FormulaError
from flower_formula.errors import UndeclaredSymbol
from flower_site import formula_worker
from flower_site.formula_worker import Job, check_all


@pytest.fixture(autouse=True)
def fresh_workers() -> Iterator[None]:
    formula_worker.stop()
    yield
    formula_worker.stop()


def job(latex: str, *where: str) -> Job:
    return Job(latex, None, where or ("x", "y"), {}, ("cpu",))


def test_answers_come_in_the_order_of_the_questions_from_both_processes() -> None:
    count = 2 * formula_worker.FEW + 1
    jobs = [job("x + y = y + x" if k % 3 else "x + y = y - x") for k in range(count)]
    found = check_all(jobs)
    assert len(formula_worker._workers) == 2
    assert [isinstance(outcome, Disagreement) for outcome in found] == [
        k % 3 == 0 for k in range(count)
    ]


def test_an_error_arrives_whole() -> None:
    (error,) = check_all([job("x + z = z + x + y")])
    assert isinstance(error, UndeclaredSymbol)
    assert (error.name, error.span, error.latex) == ("z", (4, 5), "x + z = z + x + y")
    assert "^" in str(error)


def test_a_killed_program_leaves_no_process_behind(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from flower_site import formula_worker\n"
        "formula_worker.start()\n"
        "formula_worker._workers.append(formula_worker._Worker())\n"
        "print(*(w.process.pid for w in formula_worker._workers), flush=True)\n"
        "time.sleep(60)\n"
    )
    script = tmp_path / "program.py"
    script.write_text("if __name__ == '__main__':\n" + textwrap.indent(code, "    "))
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        workers = [int(pid) for pid in program.stdout.readline().split()]
        program.kill()
    assert len(workers) == 2
    until = time.monotonic() + 30
    while any(map(alive, workers)):
        assert time.monotonic() < until, "the processes outlive the program"
        time.sleep(0.1)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_no_formula_starts_no_process() -> None:
    assert check_all([]) == []
    assert formula_worker._workers == []


class Deadly:
    """A library of definitions that ends the process that looks into it."""

    def items(self) -> Any:
        os._exit(9)

    __iter__ = __len__ = items


def test_a_formula_that_ends_its_process_is_named_and_the_others_are_checked() -> None:
    good = job("x + y = y + x")
    found = check_all([good, replace(good, library=cast(Any, Deadly())), good])
    assert [isinstance(outcome, FormulaError) for outcome in found] == [False, True, False]
    assert "exit code 9" in str(found[1])


def test_changed_code_is_run_by_a_new_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "code.py"
    code.write_text("# one\n")
    monkeypatch.setattr(formula_worker, "source_files", lambda: [code])

    def process() -> int | None:
        formula_worker.start()
        return formula_worker._workers[0].process.pid

    first = process()
    assert process() == first
    code.write_text("# number two\n")
    assert process() != first
