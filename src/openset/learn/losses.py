"""Losses and rates as pure functions of logits, each with one value for every member."""

from __future__ import annotations

from typing import Any

import torch
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


class ConstrainedLoss(torch.autograd.Function):
    """CoLOR's objective and soft recalls in one pass, with the gradient written out.

    objective = w·CE(classes, y) + Σ_heads mean_source softplus(h);  soft recall = mean_target σ(m·h). The same as
    class_loss, known_loss and soft_rate together, in half the kernels: on small networks a
    step is made of overhead.
    """

    @staticmethod
    def forward(
        ctx: Any, classes: Tensor, novelty: Tensor, y: Tensor, class_weight: float, multiplier: float
    ) -> tuple[Tensor, Tensor]:
        """Objective (members,) and soft recall (members, heads) from logits of source rows, then target rows."""
        rows = y.shape[1]
        log_p = torch.log_softmax(classes[:, :rows], dim=-1)
        source, recalled = novelty[:, :rows], torch.sigmoid(novelty[:, rows:] * multiplier)
        ctx.state = (log_p, y, source, recalled, classes.shape[1], class_weight, multiplier)
        cross_entropy = log_p.gather(-1, y.unsqueeze(-1)).sum(dim=(1, 2)) * (-class_weight / rows)
        known = F.softplus(source).sum(dim=(1, 2)) / rows
        return cross_entropy + known, recalled.mean(dim=1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of both kinds of logits."""
        log_p, y, source, recalled, n_rows, class_weight, multiplier = ctx.state
        of_objective, of_recall = gradients
        rows = y.shape[1]
        each = (of_objective / rows)[:, None, None]
        of_classes = torch.zeros(log_p.shape[0], n_rows, log_p.shape[2], dtype=log_p.dtype, device=log_p.device)
        on_source = of_classes[:, :rows]
        torch.exp(log_p, out=on_source)
        on_source.scatter_add_(-1, y.unsqueeze(-1), torch.full_like(log_p[..., :1], -1.0))
        on_source.mul_(each * class_weight)
        per_target = of_recall * (multiplier / recalled.shape[1])
        of_novelty = torch.cat(
            [torch.sigmoid(source) * each, recalled * (1 - recalled) * per_target[:, None]], dim=1
        )
        return of_classes, of_novelty, None, None, None
