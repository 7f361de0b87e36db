"""Functions that mathematics knows by name, in their spellings. Their values are in ``values``."""

from __future__ import annotations

_SPELLINGS = {
    "softmax": ("softmax", "Softmax", "SoftMax"),
    "exp": ("exp",),
    "log": ("log", "ln"),
    "sin": ("sin",),
    "cos": ("cos",),
    "tan": ("tan",),
    "tanh": ("tanh", "Tanh"),
    "sinh": ("sinh",),
    "cosh": ("cosh",),
    "sigmoid": ("sigmoid", "Sigmoid", "sigma"),
    "erf": ("erf",),
    "relu": ("ReLU", "relu", "Relu"),
    "max": ("max",),
    "min": ("min",),
    "concat": ("Concat", "concat", "Concatenate", "CONCAT"),
    "mod": ("mod",),
    "sign": ("sign", "sgn"),
    "mean": ("mean", "Mean"),
    "variance": ("Var", "var", "Variance"),
}
_NAMES = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}


def function_name(spelling: str) -> str | None:
    """The function that a word means, or None. A declared symbol of that name has precedence over
    it.
    """
    return _NAMES.get(spelling.strip())
