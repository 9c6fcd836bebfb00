"""Losses and rates as pure functions of logits, with one value for every member; gradient reversal."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def class_loss(logits: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
    """Return the mean softmax cross entropy of known classes, (members,).

    ``logits`` is (members, rows, k), ``y`` (members, rows). ``smoothing`` is the share of every label that is
    spread over all classes.
    """
    rows = F.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none", label_smoothing=smoothing)
    return rows.view_as(y).mean(dim=1)


def known_loss(logits: Tensor) -> Tensor:
    """Return the mean logistic loss of rows that are known, from (members, rows, heads): (members, heads)."""
    return F.softplus(logits).mean(dim=1)


def novel_loss(logits: Tensor) -> Tensor:
    """Return the mean logistic loss of rows that are novel, from (members, rows, heads): (members, heads)."""
    return F.softplus(-logits).mean(dim=1)


def soft_rate(logits: Tensor, multiplier: float) -> Tensor:
    """Return mean σ(m·h), a differentiable approximation of the share of rows that a head calls novel."""
    return (logits * multiplier).sigmoid().mean(dim=1)


def hard_rate(logits: Tensor) -> Tensor:
    """Return the share of rows that a head calls novel, h > 0, without a gradient."""
    return (logits.detach() > 0).double().mean(dim=1)


def pu_risks(known: Tensor, mixed: Tensor, prior: Tensor, loss: str = "sigmoid") -> tuple[Tensor, Tensor]:
    """Return π·R_p⁺ and r = R_u⁻ − π·R_p⁻ from logits g (positive = known) of known and of mixed rows.

    Logits are (members, rows), π is (members,). The loss is ℓ(z) = σ(−z), or softplus(−z) if ``"logistic"``.
    """
    ell = torch.sigmoid if loss == "sigmoid" else F.softplus  # ℓ(z) is this function of −z
    as_known, as_novel = ell(-known).mean(dim=1), ell(known).mean(dim=1)
    return prior * as_known, ell(mixed).mean(dim=1) - prior * as_novel


def non_negative_risk(known_risk: Tensor, rest: Tensor, beta: float, gamma: float) -> tuple[Tensor, Tensor]:
    """Return nnPU's loss for the gradient and its risk to report, from π·R_p⁺ and r, for each member separately.

    Where r < −β the loss is −γ·r only, as published, which undoes over-fitting.
    """
    over_fitted = rest < -beta
    step = torch.where(over_fitted, -gamma * rest, known_risk + rest)
    return step, torch.where(over_fitted, known_risk - beta, known_risk + rest)


def cvir_loss(source: Tensor, target: Tensor, kept: Tensor, novel: Tensor) -> Tensor:
    """Return PULSE's discriminator loss: cross entropy over source rows and the target rows kept as novel.

    Logits are (members, rows), positive = target. Source rows have weight 1 − α and kept rows α, with α
    (members,). The loss is 0 for a member that keeps no row.
    """
    weight_source, weight_target = (1 - novel)[:, None].expand_as(source), novel[:, None] * kept
    total = (weight_source * F.softplus(source)).sum(dim=1) + (weight_target * F.softplus(-target)).sum(dim=1)
    weight = weight_source.sum(dim=1) + weight_target.sum(dim=1)
    return torch.where(novel > 0, total / weight.clamp(min=1e-12), torch.zeros_like(total))


class ConstrainedLoss(torch.autograd.Function):
    """CoLOR's objective and soft recalls in one pass, with a hand-written gradient.

    objective = w·CE(classes, y) + Σ_heads mean_source softplus(h);  soft recall = mean_target σ(m·h). It equals
    class_loss, known_loss and soft_rate together, with half as many kernels: on small networks most of a step is
    overhead.
    """

    @staticmethod
    def forward(
        ctx: Any, classes: Tensor, novelty: Tensor, y: Tensor, class_weight: float, multiplier: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return objective (members,) and soft recall (members, heads) from logits of source, then target rows.

        The multiplier is one number for all members, or (members, 1, 1).
        """
        rows = y.shape[1]
        log_p = torch.log_softmax(classes[:, :rows], dim=-1)
        source, recalled = novelty[:, :rows], torch.sigmoid(novelty[:, rows:] * multiplier)
        ctx.state = (log_p, y, source, recalled, classes.shape[1], class_weight, multiplier)
        cross_entropy = log_p.gather(-1, y.unsqueeze(-1)).sum(dim=(1, 2)) * (-class_weight / rows)
        known = F.softplus(source).sum(dim=(1, 2)) / rows
        return cross_entropy + known, recalled.mean(dim=1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of class logits and novelty logits."""
        log_p, y, source, recalled, n_rows, class_weight, multiplier = ctx.state
        of_objective, of_recall = gradients
        rows = y.shape[1]
        each = (of_objective / rows)[:, None, None]
        of_classes = torch.zeros(log_p.shape[0], n_rows, log_p.shape[2], dtype=log_p.dtype, device=log_p.device)
        on_source = of_classes[:, :rows]
        torch.exp(log_p, out=on_source)
        on_source.scatter_add_(-1, y.unsqueeze(-1), torch.full_like(log_p[..., :1], -1.0))
        on_source.mul_(each * class_weight)
        per_target = of_recall[:, None] * (multiplier / recalled.shape[1])
        of_novelty = torch.cat([torch.sigmoid(source) * each, recalled * (1 - recalled) * per_target], dim=1)
        return of_classes, of_novelty, None, None, None


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, strength: float) -> Tensor:
        ctx.strength = strength
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * -ctx.strength, None


def reverse_gradient(values: Tensor, strength: float = 1.0) -> Tensor:
    """Return the values unchanged; in the backward pass their gradient is multiplied by −strength."""
    reversed_: Tensor = _Reversal.apply(values, strength)  # type: ignore[no-untyped-call]
    return reversed_
