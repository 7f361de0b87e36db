"""The command ``flower``: check the site, create a card or a paper summary."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flower_site.one_formula import FormulaCommand
from flower_site.problems import Problem, Problems

app = typer.Typer(
    help="Flower Research Notes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
new = typer.Typer(help="Create a page and its notebook from the template.", no_args_is_help=True)
app.add_typer(new, name="new")
errors = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
out = Console(highlight=False, soft_wrap=True, emoji=False)


def find_root() -> Path:
    """The nearest folder from here upwards that holds ``mkdocs.yml``."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "mkdocs.yml").exists():
            return folder
    raise Problem(
        "这里不在 Flower Research Notes 的仓库里",
        path=here,
        remedy="先 cd 到含有 mkdocs.yml 的文件夹",
    )


@app.command()
def check() -> None:
    """Check formulas, labels, references, bibliography keys and front matter. Exit 1 on any
    problem.
    """
    started = time.perf_counter()
    from flower_site import formula_worker

    formula_worker.start()  # before the spinner's thread, see there
    with errors.status("检查公式……"):
        from flower_site.check import check_site

        report = check_site(find_root())
    for problem in report.problems:
        errors.print(f"{problem}\n", markup=False)
    counts = "，".join(f"{what} {number}" for what, number in report.counts.items())
    seconds = time.perf_counter() - started
    out.print(f"{counts}；问题 {len(report.problems)}（{seconds:.1f} 秒）", markup=False)
    raise typer.Exit(1 if report.failed else 0)


@app.command(cls=FormulaCommand)
def formula(
    latex: Annotated[str, typer.Argument(help="a display, without dollars")],
    code: Annotated[
        str | None, typer.Option(help="the call to compare with, e.g. 'p.m.f(Q, K)'")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(help=r"a declaration, e.g. 'Q \[n, d_k]'")
    ] = None,
    uses: Annotated[
        list[str] | None,
        typer.Option(help="a formula block of the site that defines what this formula uses"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
) -> None:
    """Check one formula. Exit 0: it agrees; 1: it disagrees; 2: it cannot be read."""
    from flower_site.one_formula import UNREADABLE, Judgement, definitions, judge

    try:
        library = definitions(find_root(), uses) if uses else {}
        result = judge(latex, code, where or [], library)
    except Problem as problem:
        result = Judgement(UNREADABLE, str(problem))
    for warning in result.warnings:
        errors.print(f"提醒：{warning}", markup=False)
    if as_json:
        out.print(result.as_json(), markup=False)
    else:
        (out if result.exit_code == 0 else errors).print(result.text, markup=False)
    raise typer.Exit(result.exit_code)


@app.command()
def mutate(
    slugs: Annotated[
        list[str] | None, typer.Argument(help="formula names; none, or all, for every formula")
    ] = None,
) -> None:
    """Change every formula, and the function it names, a piece at a time; count what is noticed.

    Exit 1 if a wrong formula is accepted, or if under 95 % of the code changes are noticed.
    """
    from flower_site.mutation import mutation_report

    failed = False
    for line in mutation_report(find_root(), slugs or []):
        out.print(line.text, markup=False)
        failed = failed or line.failed
    raise typer.Exit(1 if failed else 0)


@new.command("card")
def card(
    slug: Annotated[
        str, typer.Argument(help="lower-case words joined by hyphens, e.g. flash-attention")
    ],
    title: Annotated[str | None, typer.Option(help="the card's title in Chinese")] = None,
) -> None:
    """A knowledge card and its notebook, wired to each other."""
    from flower_site.new_note import new_card

    _created(new_card(find_root(), slug, title))


@new.command("paper")
def paper(
    slug: Annotated[
        str,
        typer.Argument(help="an arXiv number or a slug, e.g. 1706.03762 or layer-normalization"),
    ],
) -> None:
    """A paper summary and its notebook, wired to each other."""
    from flower_site.new_note import new_paper

    _created(new_paper(find_root(), slug))


def _created(paths: list[Path]) -> None:
    root = find_root()
    for path in paths:
        shown = path.relative_to(root) if path.is_absolute() else path
        out.print(f"已创建 {shown}", markup=False)


def main() -> None:
    """Runs the command; a problem is printed, not thrown."""
    try:
        app()
    except Problem as problem:
        errors.print(str(problem), markup=False)
        raise SystemExit(1) from None
    except Problems as problems:
        errors.print(str(problems), markup=False)
        raise SystemExit(1) from None
