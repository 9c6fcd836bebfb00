"""Text encoders: any transformers or sentence-transformers model; the default is the packaged MiniLM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openset._utils.extras import require
from openset.features.base import Batch, Encoder
from openset.features.model_files import LOCAL, load_pretrained, model_directory, model_files, read_json

Pooling = Literal["mean", "cls", "pooler"]

_WINDOW = 1024
"""How many texts are tokenised and sorted by length together: more need less padding, but more memory."""


class Recipe(NamedTuple):
    """How to use the model of a directory, as its files say."""

    directories: list[Path]
    """The directories with the model's files, the transformers model first."""
    pooling: Pooling = "mean"
    normalise: bool = False
    prompt: str = ""
    lower: bool = False


def read_recipe(directory: Path) -> Recipe:
    """Read how a sentence-transformers directory says it is used; for any other model the mean is pooled."""
    if "vision_config" in read_json(directory / "config.json"):
        raise ValueError(f"{directory} is a model of text and images; pass a text model, or use ImageEncoder")
    modules = read_json(directory / "modules.json")
    if not modules:
        return Recipe([directory])
    kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise ValueError(
            f"{directory} is a sentence-transformers model of {' + '.join(kinds)}; "
            "openset reads Transformer + Pooling, and Normalize after them"
        )
    model, pooling = (directory / module["path"] for module in modules[:2])
    general = read_json(directory / "config_sentence_transformers.json")
    prompt = (general.get("prompts") or {}).get(general.get("default_prompt_name"), "")
    settings = read_json(pooling / "config.json")
    if prompt and not settings.get("include_prompt", True):
        raise ValueError(f"{directory} excludes its prompt from the pooling, which openset does not support")
    lower = bool(read_json(model / "sentence_bert_config.json").get("do_lower_case"))
    paths = dict.fromkeys([model, directory, pooling])
    return Recipe(list(paths), _pooling_mode(settings, directory), len(kinds) == 3, prompt, lower)


def _pooling_mode(settings: dict[str, Any], directory: Path) -> Pooling:
    """The pooling mode: one word in new sentence-transformers directories, flags in older ones."""
    flags = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    active = [name for name, on in settings.items() if name.startswith("pooling_mode_") and on]
    modes = [settings["pooling_mode"]] if "pooling_mode" in settings else [flags.get(a, a) for a in active]
    if modes == ["mean"] or modes == ["cls"]:
        return modes[0]
    raise ValueError(f"{directory} pools by {modes}; openset pools by 'mean' or 'cls'")


class TextEncoder(Encoder):
    """From texts to features with a transformers model.

    Parameters
    ----------
    model : "minilm" (packaged: all-MiniLM-L6-v2, 384 features), a directory, or a name on the hub.
    pooling : "mean" of the tokens' last hidden states, "cls", the first token's, or "pooler", the model's own
        layer on top of the first token's. ``None``: what a sentence-transformers directory says, "mean" for other
        models. Checkpoints of RoBERTa have no weights of that layer: they are drawn, always the same.
    normalise : whether to scale features to length 1. ``None``: what the directory says, by default not.
    max_tokens : longer texts are cut to this, or to the model's own limit if that is lower.
    device : where torch computes.

    >>> encoder = TextEncoder("minilm")
    >>> encoder
    TextEncoder('minilm', pooling='mean', normalise=True, max_tokens=128, prompt='', lower=False)
    """

    kind = "text"

    def __init__(
        self,
        model: str | Path = "minilm",
        *,
        pooling: Pooling | None = None,
        normalise: bool | None = None,
        max_tokens: int = 128,
        device: str = "cpu",
    ) -> None:
        if pooling not in (None, "mean", "cls", "pooler"):
            raise ValueError(f"pooling must be 'mean', 'cls', 'pooler' or None, got {pooling!r}")
        if max_tokens < 3:
            raise ValueError(f"max_tokens must be at least 3 (two are special), got {max_tokens}")
        self.name = str(model)
        self.device = device
        self._max_tokens = int(max_tokens)
        self._recipe = read_recipe(model_directory(model))
        self.settings = {
            "pooling": pooling or self._recipe.pooling,
            "normalise": self._recipe.normalise if normalise is None else normalise,
            "max_tokens": self._max_tokens,
            "prompt": self._recipe.prompt,
            "lower": self._recipe.lower,
        }

    def batches(self, items: Sequence[str], rows: Sequence[int], batch_size: int) -> Iterator[Batch]:
        """Tokenise a window of rows; yield its batches, sorted by length, the longest texts first."""
        for start in range(0, len(rows), _WINDOW):
            window = rows[start : start + _WINDOW]
            tokens = self._tokenise([items[row] for row in window])
            lengths = np.array([len(ids) for ids in tokens["input_ids"]])
            if not lengths.all():
                raise ValueError(f"row {window[int(lengths.argmin())]}: the text has no tokens")
            order = np.argsort(-lengths, kind="stable")
            for first in range(0, len(order), batch_size):
                chosen = order[first : first + batch_size]
                padded = {name: self._pad(name, [lists[i] for i in chosen]) for name, lists in tokens.items()}
                yield Batch([window[i] for i in chosen], padded)

    def _tokenise(self, texts: list[str]) -> dict[str, list[list[int]]]:
        prompt, lower = self._recipe.prompt, self._recipe.lower
        prompted = [prompt + (text.lower() if lower else text) for text in texts]
        limit = min(self._max_tokens, self._tokenizer.model_max_length)
        return dict(self._tokenizer(prompted, truncation=True, max_length=limit, return_attention_mask=True))

    def _pad(self, name: str, lists: list[list[int]]) -> NDArray[np.int64]:
        """Pad on the right. The attention mask is 0 there, so features do not depend on the other rows."""
        fill = (self._tokenizer.pad_token_id or 0) if name == "input_ids" else 0
        padded = np.full((len(lists), max(map(len, lists))), fill, dtype=np.int64)
        for row, values in zip(padded, lists, strict=True):
            row[: len(values)] = values
        return padded

    @cached_property
    def _tokenizer(self) -> Any:
        transformers = require("transformers", "encoding text", "encoders")
        directory = self._recipe.directories[0]
        try:
            return transformers.AutoTokenizer.from_pretrained(directory, **LOCAL)
        except (OSError, ValueError) as error:
            raise ValueError(f"{directory} holds no tokenizer that transformers can load: {error}") from error

    @cached_property
    def _model(self) -> Any:
        from transformers import AutoModel

        model = load_pretrained(AutoModel, self._recipe.directories[0], self.device)
        return model.get_encoder() if model.config.is_encoder_decoder else model

    def _features(self, tensors: dict[str, Any]) -> Any:
        output = self._model(**tensors)
        if self.settings["pooling"] == "pooler":
            if output.get("pooler_output") is None:
                raise ValueError(f"{self.name} has no layer to pool with: use pooling='cls' or 'mean'")
            return output.pooler_output
        hidden = output.last_hidden_state
        if self.settings["pooling"] == "cls":
            return hidden[:, 0]
        mask = tensors["attention_mask"].unsqueeze(-1).to(hidden.dtype)
        return (hidden * mask).sum(1) / mask.sum(1)

    def _files(self) -> list[Path]:
        return model_files(self._recipe.directories)

    def _sample(self) -> str:
        return "text"

    def _content(self, item: object, row: int) -> bytes:
        if not isinstance(item, str):
            raise ValueError(f"row {row}: expected a text, got {item!r} ({type(item).__name__})")
        try:
            return item.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"row {row}: the text is not valid Unicode: {error}") from error
