"""A progress bar on the terminal, with the loss beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor


@contextmanager
def progress_bar(
    description: str, n_steps: int | None, *, done: int = 0, show: bool | None = None
) -> Iterator[Callable[[Tensor], None]]:
    """Show how far an epoch is.

    Args:
        description: what stands before the bar.
        n_steps: how many steps it takes, if that is known.
        done: how many of them are done already.
        show: whether to show it; by default where stderr is a terminal, so that neither a log nor
            a notebook is filled with bars.

    Yields:
        A function to call with the loss after each step. The loss is read, and so a device waited
        for, only if there is a bar to show it.
    """
    console = Console(stderr=True)
    if not (console.is_terminal if show is None else show):
        yield lambda loss: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(description, total=n_steps, completed=done, loss="–")
        yield lambda loss: progress.update(task, advance=1, loss=f"{float(loss):.3f}")
