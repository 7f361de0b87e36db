"""Processes that evaluate formulas: they import torch while this one reads the pages.

Importing torch takes longer than everything else that a check does. Here the import is started
first and waited for last, and a check of which nothing changed needs no torch at all.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flower_formula
from flower_formula.errors import FormulaError
from flower_formula.target import Definition

if TYPE_CHECKING:
    from flower_formula import Report

PACKAGES = ("flower_transformer", "flower_site.bindings")
FEW = 8  # so many formulas take less time than importing torch in a second process

_workers: list[_Worker] = []
_code: Mapping[Path, tuple[int, int]] = {}


@dataclass(frozen=True)
class Job:
    """One formula to compare with its code: the arguments of `flower_formula.check`."""

    latex: str
    code: str | None
    where: tuple[str, ...]
    library: Mapping[str, Definition]
    devices: tuple[str, ...]


def devices() -> tuple[str, ...]:
    """The CPU, and CUDA where there is one. Without NVIDIA's driver torch need not be asked."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return ("cpu",)
    import torch

    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def source_files() -> list[Path]:
    """The sources that a check runs: reader, package and bindings, as they are imported."""
    here = Path(__file__).parent
    packages = [Path(flower_formula.__file__).parent, here.parent / "flower_transformer"]
    return [*(path for package in packages for path in package.rglob("*.py")), here / "bindings.py"]


def start() -> None:
    """Starts a worker, unless one runs the code as it is on the disk now."""
    global _code
    code = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in source_files()}
    if code != _code:
        stop()
        _code = code
    if not _workers:
        _workers.append(_Worker())


def stop() -> None:
    """Ends the workers; they have nothing to lose."""
    while _workers:
        _workers.pop().end()


def check_all(jobs: Sequence[Job]) -> list[Report | FormulaError]:
    """Compares every formula with its code; the error is returned where it does not agree."""
    if not jobs:
        return []
    start()
    if len(jobs) > FEW and len(_workers) < 2:
        _workers.append(_Worker())
    shares = [jobs[number :: len(_workers)] for number in range(len(_workers))]
    for worker, share in zip(_workers, shares, strict=True):
        worker.give(share)
    outcomes: list[Report | FormulaError] = [FormulaError("not checked", (0, 0))] * len(jobs)
    for number, (worker, share) in enumerate(zip(list(_workers), shares, strict=True)):
        outcomes[number :: len(shares)] = worker.take(share)
    return outcomes


class _Worker:
    """One process and the pipe to it. It ends with this process at the latest."""

    def __init__(self) -> None:
        # A fork takes no time, but copies only one of several threads, whatever the rest hold.
        quick = sys.platform == "linux" and threading.active_count() == 1
        system: Any = multiprocessing.get_context("fork" if quick else "spawn")
        self.pipe, end = system.Pipe()
        # What a fork copied of the other ends would keep it from seeing that they are closed.
        copied = [self.pipe, *(worker.pipe for worker in _workers)] if quick else []
        self.process = system.Process(target=_work, args=(end, copied), daemon=True)
        self.process.start()
        end.close()

    def give(self, jobs: Sequence[Job]) -> None:
        with suppress(BrokenPipeError):  # take() says that the process has ended
            self.pipe.send(jobs)

    def take(self, jobs: Sequence[Job]) -> list[Report | FormulaError]:
        """The outcomes of the jobs given last; a formula that ends the process is named."""
        outcomes: list[Report | FormulaError] = []
        while len(outcomes) < len(jobs):
            try:
                outcomes.append(self.pipe.recv())
            except (EOFError, OSError):
                self.process.join()
                latex = jobs[len(outcomes)].latex
                outcomes.append(
                    FormulaError(
                        "the process that evaluated this ended with exit code "
                        f"{self.process.exitcode}",
                        (0, len(latex)),
                        "look at the messages above; it may have used up the memory",
                    )
                )
                rest = jobs[len(outcomes) :]
                _workers.remove(self)
                return outcomes + check_all(rest)
        return outcomes

    def end(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _work(pipe: Connection, copied: Sequence[Connection]) -> None:
    """What a worker does until the other end is closed."""
    for end in copied:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    gc.disable()  # all that an import makes stays: searching it for rubbish costs a fifth more
    with suppress(Exception):  # the formulas that need what cannot be imported say so
        import flower_formula.checker  # noqa: F401
        import flower_transformer.attention  # noqa: F401

    gc.freeze()
    gc.enable()
    while True:
        try:
            jobs: Sequence[Job] = pipe.recv()
        except EOFError:
            return
        for job in jobs:
            pipe.send(_check(job))


def _check(job: Job) -> Report | FormulaError:
    try:
        return flower_formula.check(
            job.latex,
            job.code,
            job.where,
            packages=PACKAGES,
            library=job.library,
            devices=job.devices,
        )
    except FormulaError as error:
        return error.with_traceback(None)
