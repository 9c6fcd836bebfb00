"""Tiny models with random weights, saved as transformers saves real ones."""

from __future__ import annotations

import string

WORDS = [
    "the", "a", "red", "blue", "big", "small", "cat", "dog", "house", "runs", "sleeps", "over", "under", "and",
]  # fmt: skip


def save_tokenizer(directory):
    """A BERT tokenizer of letters, digits and some words; returns the size of its vocabulary."""
    from transformers import BertTokenizer

    letters = list(string.ascii_lowercase) + ["##" + letter for letter in string.ascii_lowercase]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *string.digits, *WORDS]
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "vocab.txt"
    file.write_text("\n".join(vocabulary))
    BertTokenizer(str(file), model_max_length=64).save_pretrained(directory)
    return len(vocabulary)


def save_text_model(directory, model, config, **settings):
    """Save a model of two attention heads with seeded random weights, and its tokenizer; return the directory."""
    import torch

    size = save_tokenizer(directory)
    torch.manual_seed(0)
    model(config(vocab_size=size, num_attention_heads=2, **settings)).save_pretrained(directory)
    return directory
