"""Code drawn exactly like a fenced block, by whatever `pymdownx.highlight` is set up with."""

from __future__ import annotations

from markdown import Markdown
from pymdownx.highlight import HighlightExtension

_OPTIONS = (
    "guess_lang",
    "pygments_style",
    "use_pygments",
    "noclasses",
    "linenums",
    "linenums_style",
    "linenums_special",
    "linenums_class",
    "extend_pygments_lang",
    "language_prefix",
    "code_attr_on_pre",
    "auto_title",
    "auto_title_map",
    "line_spans",
    "line_anchors",
    "anchor_linenums",
    "pygments_lang_class",
    "stripnl",
    "default_lang",
    "title_mode",
)


def highlighted(md: Markdown, source: str, language: str, *, title: str = "") -> str:
    """The code as HTML.

    Args:
        md: the document; its `pymdownx.highlight` settings apply.
        source: the code.
        language: a Pygments lexer.
        title: shown above the code.
    """
    extension = next(
        (e for e in md.registeredExtensions if isinstance(e, HighlightExtension)), None
    )
    if extension is None:
        extension = HighlightExtension(_enabled=False)
        extension.extendMarkdown(md)
    settings = extension.get_pymdownx_highlight_settings()
    extension.pygments_code_block += 1
    highlighter = extension.get_pymdownx_highlighter()(
        md=md, **{name: settings[name] for name in _OPTIONS if name in settings}
    )
    html: str = highlighter.highlight(
        source,
        language,
        css_class=settings["css_class"],
        title=title,
        code_block_count=extension.pygments_code_block,
    )
    return html
