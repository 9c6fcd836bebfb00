"""ZOC's names: a caption decoder proposes them for an image's embedding, CLIP's text model embeds them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openset.errors import MissingExtraError
from openset.features.encoder import load_pretrained
from openset.features.model_files import model_directory

PROMPT = "This is a photo of a {}"
_BATCH = 64


def embed_names(text_encoder: str, names: Sequence[str]) -> NDArray[np.float64]:
    """Embeddings (names, d) of "This is a photo of a ⟨name⟩" by the text half of a CLIP model in a folder."""
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
    """For each image embedding the names that a caption decoder thinks of, without the known ones.

    The decoder writes a caption greedily, ``steps`` tokens at most, and the ``top`` likeliest tokens at each step
    are its proposals. It is a BERT generation decoder with cross-attention, whose width is a multiple of the
    embedding's: the embedding, repeated to that width, is what it attends to.
    """
    import torch

    tokenizer, model = _caption_model(decoder)
    width = model.config.hidden_size
    if width % images.shape[1]:
        raise ValueError(
            f"{decoder} attends to {width} numbers, which is no multiple of the embeddings' {images.shape[1]}: "
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
    """The names proposed for each image, embedded; each distinct name is embedded once."""
    proposed = propose_names(decoder, images, known)
    distinct = list(dict.fromkeys(name for names in proposed for name in names))
    if not distinct:
        return [np.empty((0, images.shape[1]))] * len(proposed)
    place = {name: i for i, name in enumerate(distinct)}
    vectors = embed_names(text_encoder, distinct)
    return [vectors[[place[name] for name in names]] for names in proposed]


def _likeliest_tokens(model: Any, seen: Any, steps: int, top: int) -> list[list[int]]:
    """For each image the likeliest tokens at every step of its greedy caption, until that ends."""
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
    """A token as a name, empty where it is none: special, a piece of a word, or without letters."""
    if token in tokenizer.all_special_ids:
        return ""
    found = tokenizer.convert_ids_to_tokens(token)  # None where the model has more tokens than the tokenizer
    text = (found or "").removeprefix("▁")
    return text if text.isalpha() and len(text) > 1 else ""


@lru_cache(maxsize=1)
def _text_model(folder: str) -> tuple[Any, Any]:
    transformers = _transformers()
    directory = model_directory(folder)
    model = load_pretrained(transformers.CLIPTextModelWithProjection, directory, "cpu")
    return transformers.AutoTokenizer.from_pretrained(directory, local_files_only=True), model


@lru_cache(maxsize=1)
def _caption_model(folder: str) -> tuple[Any, Any]:
    transformers = _transformers()
    directory = model_directory(folder)
    model = load_pretrained(transformers.BertGenerationDecoder, directory, "cpu")
    if not model.config.add_cross_attention:
        raise ValueError(f"{folder} is a decoder without cross-attention: it cannot attend to an image.")
    return transformers.AutoTokenizer.from_pretrained(directory, local_files_only=True), model


def _transformers() -> Any:
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise MissingExtraError("the caption decoder", "encoders") from error
    return transformers
