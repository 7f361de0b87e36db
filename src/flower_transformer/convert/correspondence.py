"""Which weights of one model are which of another, read in both directions.

A `Correspondence` lists, for each tensor of the other model ("theirs"), the parameters of ours that
it consists of. `import_weights` and `export_weights` follow it; both refuse to leave anything out.
The lists themselves are in the other files of this folder, one a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Match:
    """One tensor of theirs.

    Attributes:
        theirs: its name.
        ours: our parameters, stacked along their first axis to make theirs: more than one where
            they keep query, key and value in one tensor.
        transposed: theirs is the transpose of that stack.
        extra_axis: theirs has one more axis, of size 1, in front.
    """

    theirs: str
    ours: tuple[str, ...]
    transposed: bool = False
    extra_axis: bool = False

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Make theirs from ours; always a copy."""
        whole = torch.cat(list(parts))
        whole = whole.T.contiguous() if self.transposed else whole
        return whole.unsqueeze(0) if self.extra_axis else whole

    def split(self, whole: Tensor, sizes: Sequence[int]) -> tuple[Tensor, ...]:
        """Make ours from theirs, given the length of each first axis."""
        whole = whole.squeeze(0) if self.extra_axis else whole
        return torch.split(whole.T if self.transposed else whole, list(sizes))

    def shape(self, parts: Sequence[Tensor]) -> tuple[int, ...]:
        """Return the shape of theirs, given ours."""
        shape = (sum(len(part) for part in parts), *parts[0].shape[1:])
        return (1,) * self.extra_axis + (shape[::-1] if self.transposed else shape)


@dataclass(frozen=True)
class Correspondence:
    """All tensors of theirs.

    Attributes:
        matches: those that hold weights.
        aliases: further names of tied weights, each with the name that `matches` has for it.
        ignored: endings of names that hold no weights, but masks or tables.
    """

    matches: tuple[Match, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def same_names(ours: str, theirs: str, endings: Iterable[str] = ("weight", "bias")) -> list[Match]:
    """Match the tensors of two modules that call them alike.

    Args:
        ours: name of our module.
        theirs: name of theirs.
        endings: names of the tensors in it.

    Returns:
        One match for each ending.
    """
    return [Match(f"{theirs}.{ending}", (f"{ours}.{ending}",)) for ending in endings]


def import_weights(
    model: nn.Module, state: Mapping[str, Tensor], correspondence: Correspondence
) -> None:
    """Copy their weights into our model. Nothing is copied unless everything fits.

    Args:
        model: ours; keeps its dtype and device.
        state: their state dict.
        correspondence: which weights are which.

    Raises:
        ValueError: a name is missing on either side, is unknown, or is matched twice; a shape
            differs; or two names of a tied weight hold different numbers.
    """
    parameters = _our_parameters(model, correspondence)
    matches, aliases = correspondence.matches, correspondence.aliases
    state = {name: x for name, x in state.items() if not name.endswith(correspondence.ignored)}
    expected = {match.theirs for match in matches}
    _refuse("their weights lack", expected - set(state))
    _refuse("their weights have unknown", set(state) - expected - set(aliases))
    for alias, name in aliases.items():
        if alias in state and not torch.equal(state[alias], state[name]):
            raise ValueError(f"{alias} and {name} are to be one weight, but differ")

    shapes = []
    for match in matches:
        wanted = match.shape([parameters[name] for name in match.ours])
        got = tuple(state[match.theirs].shape)
        if got != wanted:
            shapes.append(f"{match.theirs} has shape {got}, expected {wanted}")
    if shapes:
        raise ValueError("; ".join(shapes))

    with torch.no_grad():
        for match in matches:
            targets = [parameters[name] for name in match.ours]
            parts = match.split(state[match.theirs], [len(target) for target in targets])
            for target, part in zip(targets, parts, strict=True):
                target.copy_(part)


def export_weights(model: nn.Module, correspondence: Correspondence) -> dict[str, Tensor]:
    """Copy our weights into a state dict of theirs.

    Args:
        model: ours.
        correspondence: which weights are which.

    Returns:
        Their state dict, tied weights under each of their names; it shares no memory with ours.

    Raises:
        ValueError: a parameter of ours is missing in the correspondence, is matched twice, or does
            not exist.
    """
    parameters = _our_parameters(model, correspondence)
    state = {
        match.theirs: match.join([parameters[name].detach() for name in match.ours])
        for match in correspondence.matches
    }
    return state | {alias: state[name] for alias, name in correspondence.aliases.items()}


def _our_parameters(model: nn.Module, correspondence: Correspondence) -> dict[str, nn.Parameter]:
    """Return the parameters by name, after a look whether each is matched exactly once."""
    parameters = dict(model.named_parameters())
    times = Counter(name for match in correspondence.matches for name in match.ours)
    _refuse("our model lacks", set(times) - set(parameters))
    _refuse("nothing corresponds to our", set(parameters) - set(times))
    _refuse("matched more than once:", {name for name in times if times[name] > 1})
    return parameters


def _refuse(what: str, names: set[str]) -> None:
    if names:
        raise ValueError(f"{what} {', '.join(sorted(names))}")
