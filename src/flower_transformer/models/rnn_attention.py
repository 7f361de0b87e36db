r"""A recurrent encoder and decoder with additive attention (Bahdanau et al. 2015).

Legend: B batch, S length of the source, T length of the target, V_s and V_t vocabularies,
E width of embeddings, D width of a hidden state, A width of the network that scores.

A GRU reads the source in both directions; $h_j$, (2 D), are its two states beside each other. The
decoder's state $s_i$ follows from $s_{i-1}$, the last token $y_{i-1}$ and the context
$c_i = \sum_j \alpha_{ij} h_j$, whose weights come from $s_{i-1}$. The token is read off $s_i$,
$y_{i-1}$ and $c_i$, here by a tanh layer where the paper has a maxout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from flower_transformer.additive import AdditiveAttention
from flower_transformer.cache import Cache
from flower_transformer.masks import require_boolean
from flower_transformer.models.parameter_count import linear_parameters


@dataclass(frozen=True)
class RNNAttentionConfig:
    """Sizes of a recurrent translation model.

    Attributes:
        n_source_tokens: V_s.
        n_target_tokens: V_t.
        d_embedding: E.
        d_hidden: D.
        d_attention: A.
        dropout_p: of embeddings and of the layer before the logits.
    """

    n_source_tokens: int
    n_target_tokens: int
    d_embedding: int
    d_hidden: int
    d_attention: int
    dropout_p: float = 0.0

    @classmethod
    def rnnsearch(cls) -> RNNAttentionConfig:
        """Return the sizes of RNNsearch.

        Source: Bahdanau et al. 2015, section 4.2 and appendix A.2.3.
        """
        return cls(30000, 30000, 620, 1000, 1000)


def parameter_count(config: RNNAttentionConfig) -> int:
    """Count the parameters of tables, three GRUs, attention, first state and output.

    Args:
        config: the sizes.

    Returns:
        The number of parameters. A GRU from n numbers to D has 3 (n D + D^2 + 2 D).
    """
    e, d, a = config.d_embedding, config.d_hidden, config.d_attention
    tables = (config.n_source_tokens + config.n_target_tokens) * e
    grus = 2 * _gru_parameters(e, d) + _gru_parameters(e + 2 * d, d)
    attention = d * a + 2 * d * a + a  # W, U, v
    first_state = linear_parameters(d, d)
    output = linear_parameters(3 * d + e, e) + linear_parameters(e, config.n_target_tokens)
    return tables + grus + attention + first_state + output


def _gru_parameters(n_in: int, d: int) -> int:
    return 3 * (n_in * d + d * d + 2 * d)


class Annotations(NamedTuple):
    """What the encoder made of a source.

    Attributes:
        states: h (B, S, 2 D); those of padding are 0.
        first_state: s_0 (B, D).
        source_mask: boolean (B, S), True = real token, or None.
    """

    states: Tensor
    first_state: Tensor
    source_mask: Tensor | None


class RNNAttention(nn.Module):
    """A GRU encoder and decoder with additive attention.

    Args:
        config: its sizes.

    Source: Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and
    Translate", section 3 and appendix A.
    """

    def __init__(self, config: RNNAttentionConfig) -> None:
        super().__init__()
        self.config = config
        e, d = config.d_embedding, config.d_hidden
        self.source_embedding = nn.Embedding(config.n_source_tokens, e)
        self.target_embedding = nn.Embedding(config.n_target_tokens, e)
        self.forwards = nn.GRUCell(e, d)
        self.backwards = nn.GRUCell(e, d)
        self.make_first_state = nn.Linear(d, d)
        self.attention = AdditiveAttention(d, 2 * d, config.d_attention)
        self.decoder = nn.GRUCell(e + 2 * d, d)
        self.read_out = nn.Linear(3 * d + e, e)
        self.output = nn.Linear(e, config.n_target_tokens)
        self.dropout = nn.Dropout(config.dropout_p)

    def forward(
        self, source: Tensor, target: Tensor, *, source_mask: Tensor | None = None
    ) -> Tensor:
        """Score the token that follows each token of the target, given the source.

        Args:
            source: integers (B, S).
            target: integers (B, T): BOS and what has been written so far. Padding on the right
                needs no mask: nothing before it reads it.
            source_mask: boolean (B, S), True = real token.

        Returns:
            Logits (B, T, V_t).
        """
        return self.decode(target, self.encode(source, source_mask=source_mask))[0]

    def encode(self, source: Tensor, *, source_mask: Tensor | None = None) -> Annotations:
        """Read a source.

        Args:
            source: integers (B, S).
            source_mask: boolean (B, S), True = real token. At padding a state stays as it is, so
                that the one that reads from the right begins with the last real token.

        Returns:
            The states of both directions, and the first of the decoder.

        Raises:
            ValueError: the mask is no boolean (B, S).
        """
        if source_mask is not None:
            require_boolean("source_mask", source_mask)
            if source_mask.shape != source.shape:
                shapes = f"{tuple(source_mask.shape)}, the source {tuple(source.shape)}"
                raise ValueError(f"source_mask has shape {shapes}")
        x = self.dropout(self.source_embedding(source))  # (B, S, E)
        to_right = _run(self.forwards, x, source_mask)  # (B, S, D)
        flipped = None if source_mask is None else source_mask.flip(1)
        to_left = _run(self.backwards, x.flip(1), flipped).flip(1)
        states = torch.cat((to_right, to_left), dim=-1)  # (B, S, 2 D)
        if source_mask is not None:
            states = states.masked_fill(~source_mask.unsqueeze(-1), 0.0)
        first_state = torch.tanh(self.make_first_state(to_left[:, 0]))  # it has read everything
        return Annotations(states, first_state, source_mask)

    def decode(self, target: Tensor, annotations: Annotations) -> tuple[Tensor, Tensor]:
        """Score the token that follows each token of the target.

        Args:
            target: integers (B, T).
            annotations: of `encode`.

        Returns:
            Logits (B, T, V_t), and the weights alpha (B, T, S): exactly 0 on padding.
        """
        states, state, source_mask = annotations
        real = None if source_mask is None else source_mask.unsqueeze(1)  # (B, 1, S)
        embedded = self.dropout(self.target_embedding(target))  # (B, T, E)
        logits, weights = [], []
        for y in embedded.unbind(dim=1):  # y: (B, E)
            context, alpha = self.attention(
                state.unsqueeze(1), states, may_attend=real, return_weights=True
            )  # (B, 1, 2 D), (B, 1, S)
            context = context.squeeze(1)
            state = self.decoder(torch.cat((y, context), dim=-1), state)  # (B, D)
            hidden = torch.tanh(self.read_out(torch.cat((state, y, context), dim=-1)))  # (B, E)
            logits.append(self.output(self.dropout(hidden)))
            weights.append(alpha)
        return torch.stack(logits, dim=1), torch.cat(weights, dim=1)

    def given(self, source: Tensor, *, source_mask: Tensor | None = None) -> GivenAnnotations:
        """Read a source once, and become a language model of its target, for `generate`.

        Args:
            source: integers (B, S).
            source_mask: boolean (B, S), True = real token.

        Returns:
            What scores targets of this source.
        """
        return GivenAnnotations(self, self.encode(source, source_mask=source_mask))


def _run(cell: nn.GRUCell, x: Tensor, real: Tensor | None) -> Tensor:
    """All states of a GRU that reads x (B, S, E) from the left: (B, S, D)."""
    state = x.new_zeros(len(x), cell.hidden_size)
    states = []
    for t in range(x.shape[1]):
        new = cell(x[:, t], state)
        state = new if real is None else torch.where(real[:, t].unsqueeze(-1), new, state)
        states.append(state)
    return torch.stack(states, dim=1)


@dataclass(frozen=True)
class GivenAnnotations:
    """A recurrent model whose source is fixed: a language model of the target.

    It keeps nothing between two calls, and reads the whole target for each token.

    Attributes:
        model: the recurrent model.
        annotations: what its encoder made of the source.
    """

    model: RNNAttention
    annotations: Annotations

    @property
    def training(self) -> bool:
        """Whether dropout is on."""
        return self.model.training

    def __call__(
        self,
        tokens: Tensor,
        *,
        padding_mask: Tensor | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Tensor:
        """Score the next token.

        Args:
            tokens: (B, T), or (B * K, T) with K targets of each source next to each other.
            padding_mask: must be None: a target begins with BOS, not with padding.
            caches: must be None.

        Returns:
            Logits (B, T, V_t), or (B * K, T, V_t).

        Raises:
            ValueError: there is a mask or a cache, or the number of targets is no multiple of the
                number of sources.
        """
        if padding_mask is not None or caches is not None:
            raise ValueError("a recurrent decoder takes no padding_mask and no caches")
        states, first_state, source_mask = self.annotations
        if len(tokens) % len(states):
            raise ValueError(f"{len(tokens)} targets are no multiple of {len(states)} sources")
        n_beams = len(tokens) // len(states)
        annotations = Annotations(
            states.repeat_interleave(n_beams, dim=0),
            first_state.repeat_interleave(n_beams, dim=0),
            None if source_mask is None else source_mask.repeat_interleave(n_beams, dim=0),
        )
        return self.model.decode(tokens, annotations)[0]

    def make_caches(self) -> list[Cache]:
        """Make none."""
        return []
