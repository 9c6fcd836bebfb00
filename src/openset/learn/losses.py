"""Losses and rates as pure functions of logits, each with one value for every member."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def class_loss(logits: Tensor, y: Tensor) -> Tensor:
    """Mean softmax cross entropy of known classes: (members, rows, k) and (members, rows) to (members,)."""
    rows = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none")
    return rows.view_as(y).mean(dim=1)


def known_loss(logits: Tensor) -> Tensor:
    """Mean logistic loss of calling rows novel that are known: (members, rows, heads) to (members, heads)."""
    return F.softplus(logits).mean(dim=1)


def novel_loss(logits: Tensor) -> Tensor:
    """Mean logistic loss of calling rows known that are novel: (members, rows, heads) to (members, heads)."""
    return F.softplus(-logits).mean(dim=1)


def soft_rate(logits: Tensor, multiplier: float) -> Tensor:
    """Mean σ(m·h): the differentiable stand-in for the share of rows that a head calls novel."""
    return (logits * multiplier).sigmoid().mean(dim=1)


def hard_rate(logits: Tensor) -> Tensor:
    """The share of rows that a head calls novel, h > 0; no gradient."""
    return (logits.detach() > 0).double().mean(dim=1)
