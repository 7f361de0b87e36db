"""The closed list of LaTeX commands that the reader knows; everything else is refused by name."""

from __future__ import annotations

# Commands that only move things about on the page.
SPACES = {",", "!", ";", ":", ">", " ", "quad", "qquad", "enspace", "thinspace", "medspace"} | {
    "thickspace",
    "negthinspace",
    "displaystyle",
    "textstyle",
    "scriptstyle",
    "limits",
    "nolimits",
    "nonumber",
    "notag",
    "hfill",
    "allowbreak",
    "nobreak",
    "break",
    "mathstrut",
    "strut",
    "hline",
    "centering",
    "rm",
    "it",
    "bf",
}
# Sizes of brackets: \left( and ( mean the same.
SIZES = {"left", "right", "middle"} | {
    size + side for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m")
}
# Layout commands whose argument is dropped too.
WITH_ARGUMENT = {"tag", "tag*", "label", "hspace", "hspace*", "vspace", "vphantom", "hphantom"} | {
    "phantom",
    "color",
    "eqref",
    "ref",
    "mspace",
}
# Commands whose argument is read as text.
TEXT = {
    "text",
    "textbf",
    "textit",
    "textrm",
    "textsf",
    "texttt",
    "textnormal",
    "textsc",
    "mbox",
} | {
    "hbox",
    "operatorname",
    "operatorname*",
    "emph",
}

GREEK = set(
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi "
    "pi varpi rho varrho sigma varsigma tau upsilon phi varphi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega "
    "ell hbar".split()
)
# Letters set together in these fonts are one name; in the others each letter stands for itself.
WORD_FONTS = {"mathrm", "mathit", "mathsf", "mathtt", "mathnormal", "mathop", "mathrel", "mathbin"}
LETTER_FONTS = {"mathbf", "boldsymbol", "bm", "mathcal", "mathscr", "mathfrak", "pmb", "mathbb"}
FUNCTION_COMMANDS = set(
    "exp log ln sin cos tan sinh cosh tanh max min sup inf argmax argmin det dim Pr".split()
)
SYMBOL_COMMANDS = set(
    "cdot times odot otimes oplus ast div pm mp circ bullet "
    "sum prod "
    "le leq leqslant ge geq geqslant ne neq approx sim simeq equiv propto in notin ll gg lt gt "
    "to rightarrow leftarrow Rightarrow mapsto mid vert lvert rvert Vert lVert rVert | "
    "lfloor rfloor lceil rceil langle rangle { } lbrace rbrace lbrack rbrack "
    "ldots dots cdots vdots ddots dotsc dotsb "
    "infty top intercal mathsf prime forall exists land lor wedge vee lnot neg partial nabla "
    "bmod mod pmod backslash cup cap setminus emptyset colon coloneqq % _ & # $".split()
)
ACCENTS = {"hat", "bar", "tilde", "vec", "dot", "overline", "widehat", "widetilde", "underline"}
ENVIRONMENTS = {
    "aligned",
    "align",
    "align*",
    "split",
    "gathered",
    "gather",
    "gather*",
    "equation",
} | {
    "equation*",
    "cases",
    "dcases",
    "rcases",
    "pmatrix",
    "bmatrix",
    "matrix",
    "vmatrix",
    "Bmatrix",
    "array",
    "smallmatrix",
    "alignedat",
    "multline",
}

# What symbols mean to the parser.
PRODUCTS = {
    "cdot": "cdot",
    "times": "times",
    "odot": "odot",
    "otimes": "otimes",
    "*": "times",
    "ast": "times",
} | {
    "circ": "odot",
    "·": "cdot",
}
RELATIONS = {"=": "=", "<": "<", ">": ">", "lt": "<", "gt": ">"} | {
    "le": "<=",
    "leq": "<=",
    "leqslant": "<=",
    "ge": ">=",
    "geq": ">=",
    "geqslant": ">=",
    "ne": "!=",
    "neq": "!=",
}
OPENING = {"(": ")", "[": "]", "{": "}", "lbrace": "rbrace", "lbrack": "rbrack"}
CLOSING = {")", "]", "}", "rbrace", "rbrack"}
BARS = {"|": ("|", "abs"), "vert": ("vert", "abs"), "lvert": ("rvert", "abs")} | {
    "Vert": ("Vert", "norm"),
    "lVert": ("rVert", "norm"),
    "lfloor": ("rfloor", "floor"),
    "lceil": ("rceil", "ceiling"),
}
DOTS = {"ldots", "dots", "cdots", "dotsc", "dotsb", "vdots"}
REDUCTIONS = {"sum": "sum", "prod": "prod"}
