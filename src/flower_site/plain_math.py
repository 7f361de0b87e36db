r"""Formulas where only plain text can stand: browser tabs, the navigation, the feed, search.

``\sqrt{d_k}`` becomes √d_k, ``W^O`` becomes Wᴼ. This is for reading, not for computing: what has
no plain form keeps its name.
"""

from __future__ import annotations

import re
import unicodedata

from flower_site.blocks.page import INLINE

_TOKEN = re.compile(r"\\[a-zA-Z]+\*?|\\.|\s+|.", re.S)
_RAISED = dict(
    zip(
        "0123456789+-=()ABDEGHIJKLMNOPRTUVWabcdefghijklmnoprstuvwxyz⊤",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀ",
        strict=True,
    )
)
_SIGNS = {
    "times": "×", "cdot": "·", "odot": "⊙", "otimes": "⊗", "oplus": "⊕", "pm": "±", "ast": "*",
    "to": "→", "rightarrow": "→", "leftarrow": "←", "Rightarrow": "⇒", "mapsto": "↦",
    "infty": "∞", "partial": "∂", "nabla": "∇", "top": "⊤", "sum": "Σ", "prod": "∏", "int": "∫",
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "approx": "≈",
    "sim": "∼", "equiv": "≡", "propto": "∝", "ll": "≪", "gg": "≫", "in": "∈", "notin": "∉",
    "subset": "⊂", "cup": "∪", "cap": "∩", "forall": "∀", "exists": "∃", "mid": "|", "vert": "|",
    "lvert": "|", "rvert": "|", "Vert": "‖", "lVert": "‖", "rVert": "‖", "|": "‖", "{": "{",
    "}": "}", "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋", "ldots": "…", "dots": "…",
    "cdots": "⋯", "ell": "ℓ", "prime": "′", "varepsilon": "ε", "varphi": "φ", "vartheta": "ϑ",
}  # fmt: skip
_BLACKBOARD = {"E": "𝔼", "R": "ℝ", "N": "ℕ", "Z": "ℤ", "P": "ℙ", "C": "ℂ"}
_SPACES = {",", ";", ":", " ", "quad", "qquad", "enspace"}
_NOTHING = {
    *("left", "right", "big", "Big", "bigg", "Bigg", "bigl", "bigr", "Bigl", "Bigr", "biggl"),
    *("biggr", "Biggl", "Biggr", "!", "displaystyle", "textstyle", "limits", "nonumber"),
}
_FONTS = {
    *("mathrm", "mathbf", "mathit", "mathsf", "mathcal", "boldsymbol", "bm", "text", "textbf"),
    *("operatorname", "operatorname*", "mathop", "mathbin", "underset", "mathtt"),
}
_ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303", "vec": "\u20d7", "dot": "\u0307"}
_SIMPLE = re.compile(r"[\w.…∞′-]+")


def plain_text(latex: str) -> str:
    """A formula as plain text."""
    text = re.sub(r"\s+", " ", _Reader(latex).until(None)).strip()
    return unicodedata.normalize("NFC", text)


def plain_sentence(text: str) -> str:
    """A sentence whose inline formulas (``$…$``) are plain text."""
    return INLINE.sub(lambda match: plain_text(match[3]) if match[3] else match[0], text)


class _Reader:
    def __init__(self, latex: str) -> None:
        self.tokens: list[str] = _TOKEN.findall(latex)
        self.at = 0

    def until(self, closing: str | None) -> str:
        """Everything up to a closing brace or bracket, which is taken too."""
        parts: list[str] = []
        while self.at < len(self.tokens):
            if self.tokens[self.at] == closing:
                self.at += 1
                break
            parts.append(self._next())
        return "".join(parts)

    def _next(self) -> str:
        token = self.tokens[self.at]
        self.at += 1
        if token.isspace():
            return ""
        if token == "{":
            return self.until("}")
        if token == "^":
            raised = self._argument()
            if all(char in _RAISED for char in raised):
                return "".join(map(_RAISED.__getitem__, raised))
            return f"^{_grouped(raised)}"
        if token == "_":
            return f"_{_grouped(self._argument())}"
        if token.startswith("\\"):
            return self._command(token[1:])
        if token in "=<>≤≥":
            return f" {token} "
        return "" if token in "}&" else token

    def _argument(self) -> str:
        """One token or one group."""
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1
        if self.at >= len(self.tokens):
            return ""
        return self._next().strip()

    def _words(self) -> str:
        r"""The argument of ``\text``: blanks count."""
        if self.at < len(self.tokens) and self.tokens[self.at] == "{":
            end = self.at
            while end < len(self.tokens) and self.tokens[end] != "}":
                end += 1
            words = "".join(self.tokens[self.at + 1 : end]).replace("\\_", "_")
            self.at = end + 1
            return words
        return self._argument()

    def _command(self, name: str) -> str:
        if name in _SPACES:
            return " "
        if name == "\\":
            return "; "
        if name in ("text", "textbf"):
            return self._words()
        if name in _NOTHING or name in _FONTS:
            return ""  # the argument follows as a group
        if name in ("begin", "end"):
            self._argument()
            return ""
        if name == "sqrt":
            if self.at < len(self.tokens) and self.tokens[self.at] == "[":
                self.at += 1
                degree = self.until("]")
                return "".join(_RAISED.get(d, d) for d in degree) + f"√{_grouped(self._argument())}"
            return f"√{_grouped(self._argument())}"
        if name in ("frac", "dfrac", "tfrac"):
            above, below = self._argument(), self._argument()
            return f"{_grouped(above)}/{_grouped(below)}"
        if name == "mathbb":
            letter = self._argument()
            return _BLACKBOARD.get(letter, letter)
        if name in _ACCENTS:
            return self._argument() + _ACCENTS[name]
        return _SIGNS.get(name) or _greek(name)


def _grouped(text: str) -> str:
    """In brackets unless it reads as one thing."""
    return text if _SIMPLE.fullmatch(text) or not text else f"({text})"


def _greek(name: str) -> str:
    size = "CAPITAL" if name[0].isupper() else "SMALL"
    spelling = "LAMDA" if name.lower() == "lambda" else name.upper()
    try:
        return unicodedata.lookup(f"GREEK {size} LETTER {spelling}")
    except KeyError:
        return name
