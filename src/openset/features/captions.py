"""Class names for ZOC: a caption decoder proposes names for an image embedding, CLIP's text model embeds them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset._utils.extras import require
from openset.features.model_files import LOCAL, load_pretrained, model_directory, read_json

PROMPT = "This is a photo of a {}"
_BATCH = 64


def embed_names(text_encoder: str, names: Sequence[str]) -> NDArray[np.float64]:
    """Embeddings (names, d) of "This is a photo of a ⟨name⟩" by the text model of a CLIP model in a folder."""
    import torch

    tokenizer, model = _text_model(text_encoder)
    found = []
    for start in range(0, len(names), _BATCH):
        prompts = [PROMPT.format(name) for name in names[start : start + _BATCH]]
        tokens = tokenizer(prompts, padding=True, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            found.append(model(**tokens).text_embeds.double().numpy())
    return np.concatenate(found)


def propose_names(
    decoder: str, images: NDArray[np.floating], known: Sequence[str] = (), *, steps: int = 10, top: int = 35
) -> list[list[str]]:
    """For each image embedding, the names that a caption decoder proposes, without the known ones.

    The decoder writes a caption of at most ``steps`` tokens greedily; the ``top`` most likely tokens at each step
    are its proposals. It is a BERT generation decoder with cross-attention. Its width is a multiple of the
    embedding's: it attends to the embedding, repeated to that width.
    """
    import torch

    tokenizer, model = _caption_model(decoder)
    width = model.config.hidden_size
    if width % images.shape[1]:
        raise ValueError(
            f"{decoder} attends to {width} numbers, not a multiple of the embeddings' {images.shape[1]}: "
            "it was trained on embeddings of another model."
        )
    unwanted = {name.casefold() for name in known}
    seen = torch.from_numpy(np.tile(images, (1, width // images.shape[1])).astype(np.float32))[:, None]
    proposed: list[list[str]] = []
    for start in range(0, len(seen), _BATCH):
        for row in _likeliest_tokens(model, seen[start : start + _BATCH], steps, top):
            words = (_word(tokenizer, token) for token in row)
            proposed.append(list(dict.fromkeys(w for w in words if w and w.casefold() not in unwanted)))
    return proposed


def propose_embeddings(
    decoder: str, text_encoder: str, images: NDArray[np.floating], known: Sequence[str]
) -> list[NDArray[np.float64]]:
    """Embeddings of the names proposed for each image. Each distinct name is embedded once."""
    proposed = propose_names(decoder, images, known)
    distinct = list(dict.fromkeys(name for names in proposed for name in names))
    if not distinct:
        return [np.empty((0, images.shape[1]))] * len(proposed)
    index = {name: i for i, name in enumerate(distinct)}
    vectors = embed_names(text_encoder, distinct)
    return [vectors[[index[name] for name in names]] for names in proposed]


def _likeliest_tokens(model: Any, seen: Any, steps: int, top: int) -> list[list[int]]:
    """For each image, the most likely tokens at every step of its greedy caption, until the caption ends."""
    import torch

    start, end = model.config.bos_token_id, model.config.eos_token_id
    written = torch.full((len(seen), 1), start)
    going = torch.ones(len(seen), dtype=torch.bool)
    found: list[list[int]] = [[] for _ in range(len(seen))]
    for _ in range(steps):
        with torch.inference_mode():
            logits = model(input_ids=written, encoder_hidden_states=seen).logits[:, -1]
        likeliest = logits.topk(min(top, logits.shape[1]), dim=1).indices
        for row, tokens in enumerate(likeliest.tolist()):
            if going[row]:
                found[row] += tokens
        going &= likeliest[:, 0] != end
        if not going.any():
            break
        written = torch.cat([written, likeliest[:, :1]], dim=1)
    return found


def _word(tokenizer: Any, token: int) -> str:
    """The word of a token; empty if it is special, a piece of a word, a single letter, or not only letters."""
    if token in tokenizer.all_special_ids:
        return ""
    found = tokenizer.convert_ids_to_tokens(token)  # None if the model has more tokens than the tokenizer
    text = (found or "").removeprefix("▁")
    return text if text.isalpha() and len(text) > 1 else ""


@lru_cache(maxsize=1)
def _text_model(folder: str) -> tuple[Any, Any]:
    kind = read_json(model_directory(folder) / "config.json").get("model_type")
    if kind not in ("clip", "clip_text_model"):
        raise ValueError(
            f"{folder} is a model of type {kind!r}, not a CLIP. Names and images can be compared by a CLIP only: "
            "pass as encoder the folder or hub name of one, such as openai/clip-vit-base-patch32."
        )
    return _tokenizer_and_model(folder, "CLIPTextModelWithProjection")


@lru_cache(maxsize=1)
def _caption_model(folder: str) -> tuple[Any, Any]:
    tokenizer, model = _tokenizer_and_model(folder, "BertGenerationDecoder")
    if not model.config.add_cross_attention:
        raise ValueError(f"{folder} is a decoder without cross-attention: it cannot attend to an image.")
    return tokenizer, model


def _tokenizer_and_model(folder: str, loader: str) -> tuple[Any, Any]:
    transformers = require("transformers", "the caption decoder", "encoders")
    directory = model_directory(folder)
    model = load_pretrained(getattr(transformers, loader), directory, "cpu")
    return transformers.AutoTokenizer.from_pretrained(directory, **LOCAL), model
