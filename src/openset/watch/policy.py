"""When a watch fits a new model, and on which batches. What decides never depends on the reference rows.

A model that was fitted before a class appeared may not rank its rows high. So a watch fits new ones, each used
from the next batch on. Its thresholds come from the reference rows; were these to decide when to fit, they would
no longer be fresh for it. The share of rows called new does not depend on them: a model's own threshold is from
the rows it trained on.
"""

from __future__ import annotations

from openset.stats.shares import binomial_interval

POLICIES = ("auto", "each", "never")
WINDOW = 3
"""A new model is fitted on this many of the last batches, those that moved left out."""
KEPT_MODELS = 3
"""The last models go on scoring batches, so that evidence by one function can grow over several batches."""
OLDEST = 4
"""With ``auto``, a model is used for at most this many batches before a new one is fitted."""
_CONFIDENCE = 0.95


def model_is_due(policy: str, called: int, rows: int, called_at_fit: float, age: int) -> bool:
    """Whether a new model is fitted after a batch in which ``called`` of ``rows`` rows are called new.

    ``called_at_fit`` is that share of the model's own target, ``age`` the batches it was used for, with this one.
    With ``auto`` a model is due if more rows are called new than at its fit, beyond chance, or if it is old.

    >>> model_is_due("auto", 30, 1000, 0.01, age=1), model_is_due("auto", 12, 1000, 0.01, age=1)
    (True, False)
    """
    if policy != "auto":
        return policy == "each"
    low, _ = binomial_interval(called, rows, _CONFIDENCE)
    return age >= OLDEST or low > called_at_fit
