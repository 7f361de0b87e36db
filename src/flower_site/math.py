"""LaTeX to HTML and MathML at build time: the vendored KaTeX, run in one V8 context.

KaTeX (assets/katex, MIT licence) is JavaScript; mini-racer is V8 in a wheel, so no Node is
needed. One formula takes about 2 ms after 100 ms of start-up, and each result is kept under
`.cache/flower/katex`.
"""

from __future__ import annotations

import atexit
import json
import re
from functools import cache
from pathlib import Path

from py_mini_racer import MiniRacer

from flower_site.text_cache import TextCache

ASSETS = Path(__file__).parent / "assets" / "katex"
KATEX_VERSION = "0.19.1"

# `\\` outside an environment only breaks the line; everything else that LaTeX would refuse is an
# error here too.
_RENDER = """
function render(latex, display) {
  try {
    return JSON.stringify({html: katex.renderToString(latex, {
      displayMode: display, output: "htmlAndMathml", throwOnError: true,
      trust: asked => { throw new katex.ParseError("not allowed here: " + asked.command); },
      strict: code => code === "newLineInDisplayMode" ? "ignore" : "error"})});
  } catch (error) {
    return JSON.stringify({message: String(error.rawMessage || error.message),
                           position: error.position, length: error.length});
  }
}
"""
_STRICT = re.compile(r"^LaTeX-incompatible input and strict mode is set to 'error': ")


class MathError(ValueError):
    """KaTeX refuses a formula.

    Attributes:
        position: offset in the LaTeX at which it gave up (its length: at the end).
        length: how many characters it names.
    """

    def __init__(self, message: str, position: int, length: int) -> None:
        super().__init__(message)
        self.position = position
        self.length = length


class Katex:
    """Renders formulas, remembering each.

    Args:
        folder: where results are kept between runs; ``None`` for memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._cache = TextCache(folder, f"katex {KATEX_VERSION} 3")

    def html(self, latex: str, *, display: bool = False) -> str:
        """The formula as `<span class="katex">…`, MathML for screen readers and the LaTeX for
        copying inside.

        Raises:
            MathError: with KaTeX's own words.
        """
        return self._cache.get(f"{int(display)} {latex}", lambda: self._render(latex, display))

    def _render(self, latex: str, display: bool) -> str:
        answer = json.loads(_context().call("render", latex, display))
        if "html" in answer:
            return _outside_search(answer["html"])
        position = answer.get("position")
        raise MathError(
            _STRICT.sub("", answer["message"]),
            position=len(latex) if position is None else position,
            length=answer.get("length") or 1,
        )


@cache
def katex(root: Path) -> Katex:
    """The renderer of a repository, with its cache under `.cache/flower/katex`."""
    return Katex(root / ".cache" / "flower" / "katex")


@cache
def _context() -> MiniRacer:
    context = MiniRacer()
    atexit.register(context.close)
    context.eval((ASSETS / "katex.min.js").read_text(encoding="utf-8"))
    context.eval(_RENDER)
    return context


def _outside_search(html: str) -> str:
    """Keeps the drawing and the LaTeX source out of Material's search index: the MathML is the
    text.
    """
    html = html.replace('class="katex-html"', 'class="katex-html" data-search-exclude')
    return html.replace("<annotation ", "<annotation data-search-exclude ")


def tidy(latex: str) -> str:
    """The formula without the indentation of its lines: the same formula anywhere is the same
    text.
    """
    return re.sub(r"[ \t]*\n[ \t]*", "\n", latex).strip()
