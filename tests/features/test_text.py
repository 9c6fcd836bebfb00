from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from tiny_models import save_text_model

from openset.features import TextEncoder, encode_texts

TEXTS = [
    "the cat sleeps",
    "",
    "a big red dog runs over the small blue house and then sleeps under the house",
    "x" * 500,
    "the dog",
    "Zebra 7, unknown words!",
]


def encoded(texts, encoder, batch_size=3):
    return encode_texts(texts, encoder, batch_size=batch_size, cache=False, progress=False)


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    """A RoBERTa without weights of its pooling layer, as its official checkpoints are."""
    from transformers import RobertaConfig, RobertaForMaskedLM

    return save_text_model(
        tmp_path_factory.mktemp("models") / "roberta", RobertaForMaskedLM, RobertaConfig, hidden_size=24,
        num_hidden_layers=1, intermediate_size=32, max_position_embeddings=80, pad_token_id=0,
    )  # fmt: skip


def test_the_models_own_layer_pools_and_is_drawn_alike_where_its_weights_are_missing(bert, roberta):
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(bert)("a red cat", return_tensors="pt")
    with torch.inference_mode():
        expected = AutoModel.from_pretrained(bert).eval()(**tokens).pooler_output.numpy()
    np.testing.assert_allclose(encoded(["a red cat"], TextEncoder(bert, pooling="pooler")), expected, atol=1e-5)
    torch.manual_seed(5)
    first = encoded(TEXTS, TextEncoder(roberta, pooling="pooler"))
    torch.manual_seed(6)
    np.testing.assert_array_equal(first, encoded(TEXTS, TextEncoder(roberta, pooling="pooler")))
    assert np.abs(first).max() < 1 and not np.allclose(first, encoded(TEXTS, TextEncoder(roberta, pooling="cls")))


def by_hand(directory, text, pooling="mean", max_tokens=64):
    """One text alone, so without padding, through transformers' own calls."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(directory), AutoModel.from_pretrained(directory).eval()
    with torch.no_grad():
        inputs = tokenizer(text, truncation=True, max_length=max_tokens, return_tensors="pt")
        hidden = model(**inputs).last_hidden_state[0]
    return (hidden.mean(0) if pooling == "mean" else hidden[0]).numpy()


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_features_are_the_pooled_last_hidden_states(bert, pooling):
    features = encoded(TEXTS, TextEncoder(bert, pooling=pooling))
    expected = np.stack([by_hand(bert, text, pooling) for text in TEXTS])
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, expected, atol=1e-5)


def test_a_row_does_not_depend_on_its_batch(bert):
    encoder = TextEncoder(bert)
    alone = np.concatenate([encoded([text], encoder) for text in TEXTS])
    for batch_size in (2, 6):
        np.testing.assert_allclose(encoded(TEXTS, encoder, batch_size), alone, atol=1e-5)
    np.testing.assert_allclose(encoded(TEXTS[::-1], encoder)[::-1], alone, atol=1e-5)


def test_batches_hold_texts_of_like_length(bert):
    encoder = TextEncoder(bert)
    texts = ["the " * n for n in np.random.default_rng(0).permutation(60)]
    batches = list(encoder.batches(texts, range(60), 10))
    widths = [batch.inputs["input_ids"].shape[1] for batch in batches]
    assert widths == sorted(widths, reverse=True)
    assert sum(batch.inputs["attention_mask"].size for batch in batches) < 1.2 * sum(
        batch.inputs["attention_mask"].sum() for batch in batches
    )
    assert sorted(row for batch in batches for row in batch.rows) == list(range(60))


def test_max_tokens_cuts(bert):
    short = TextEncoder(bert, max_tokens=5)
    np.testing.assert_allclose(
        encoded(["the cat sleeps over a dog"], short), encoded(["the cat sleeps"], short), atol=1e-6
    )
    np.testing.assert_allclose(encoded([TEXTS[2]], short)[0], by_hand(bert, TEXTS[2], max_tokens=5), atol=1e-5)


def test_settings_and_weights_are_in_the_fingerprint(bert, tmp_path):
    encoders = [
        TextEncoder(bert), TextEncoder(bert, pooling="cls"), TextEncoder(bert, normalise=True),
        TextEncoder(bert, max_tokens=16),
    ]  # fmt: skip
    changed = shutil.copytree(bert, tmp_path / "changed")
    weights = bytearray((changed / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (changed / "model.safetensors").write_bytes(weights)
    prints = [encoder.fingerprint for encoder in (*encoders, TextEncoder(changed))]
    assert len(set(prints)) == 5
    assert TextEncoder(shutil.copytree(bert, tmp_path / "copy")).fingerprint == prints[0]
    assert TextEncoder(bert, device="cpu").fingerprint == prints[0]


def test_normalised_features_have_length_one(bert):
    features = encoded(TEXTS, TextEncoder(bert, normalise=True))
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("mode", "normalise", "old"),
    [("mean", True, True), ("mean", False, False), ("cls", True, False), ("cls", False, True)],
)
def test_sentence_transformers_directories_give_that_librarys_numbers(sentence_bert, mode, normalise, old):
    from sentence_transformers import SentenceTransformer

    directory = sentence_bert(mode, normalise=normalise, old=old)
    encoder = TextEncoder(directory)
    assert (encoder.settings["pooling"], encoder.settings["normalise"]) == (mode, normalise)
    theirs = SentenceTransformer(str(directory), device="cpu").encode(TEXTS, show_progress_bar=False)
    np.testing.assert_allclose(encoded(TEXTS, encoder), theirs, atol=1e-5)


def test_a_default_prompt_is_put_before_each_text(sentence_bert, bert):
    directory = sentence_bert(general={"prompts": {"find": "the big "}, "default_prompt_name": "find"})
    np.testing.assert_allclose(
        encoded(["cat", "dog"], TextEncoder(directory)), encoded(["the big cat", "the big dog"], bert), atol=1e-5
    )


def test_what_cannot_be_read_exactly_is_refused(sentence_bert):
    with pytest.raises(ValueError, match="Transformer \\+ Pooling \\+ Dense"):
        TextEncoder(sentence_bert(extra=["Dense"]))
    for old in (True, False):
        with pytest.raises(ValueError, match="pools by .*max.*'mean' or 'cls'"):
            TextEncoder(sentence_bert("max", old=old))
    directory = sentence_bert(general={"prompts": {"find": "the "}, "default_prompt_name": "find"})
    config = directory / "1_Pooling" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "include_prompt": False}))
    with pytest.raises(ValueError, match="excludes its prompt"):
        TextEncoder(directory)


def test_an_encoder_decoder_is_used_by_its_encoder(bert, tmp_path):
    import torch
    from transformers import T5Config, T5Model

    directory = shutil.copytree(
        bert, tmp_path / "t5", ignore=shutil.ignore_patterns("model.safetensors", "config.json")
    )
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=100, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    T5Model(config).save_pretrained(directory)
    encoder = TextEncoder(directory)
    assert encoder.dimension == 16
    alone = np.concatenate([encoded([text], encoder) for text in TEXTS])
    np.testing.assert_allclose(encoded(TEXTS, encoder, 6), alone, atol=1e-5)


def test_a_directory_that_lacks_weights_is_refused(bert, tmp_path):
    from safetensors.numpy import load_file, save_file

    directory = shutil.copytree(bert, tmp_path / "lacking")
    weights = load_file(directory / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="lacks 1 weights of BertModel"):
        encoded(["the cat"], directory)
    (directory / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="holds no model that transformers can load"):
        encoded(["the cat"], directory)


def test_an_image_model_is_no_text_model(vision):
    with pytest.raises(ValueError, match="model of text and images; pass a text model"):
        TextEncoder(vision["clip"])
    with pytest.raises(ValueError, match="resnet holds no tokenizer that transformers can load"):
        encoded(["the cat"], vision["resnet"])


def test_bad_settings_are_told(bert):
    with pytest.raises(ValueError, match="pooling must be"):
        TextEncoder(bert, pooling="max")
    with pytest.raises(ValueError, match="max_tokens must be at least 3"):
        TextEncoder(bert, max_tokens=2)


@pytest.mark.slow
def test_the_packaged_minilm_gives_the_published_features(shared_data):
    import pyarrow.parquet as pq

    texts = pq.read_table(shared_data / "amazon_reviews" / "reviews.parquet", columns=["text"])["text"]
    published = np.load(shared_data / "amazon_reviews" / "minilm.npy", mmap_mode="r")
    rows = np.random.default_rng(4).choice(len(texts), 24, replace=False)
    features = encoded([texts[int(row)].as_py() for row in rows], "minilm", batch_size=8)
    assert np.abs(features - published[rows].astype(np.float32)).max() < 2e-4  # float16 keeps 11 bits
    assert TextEncoder().settings["max_tokens"] == 128
    alone = encoded([texts[int(row)].as_py() for row in rows[:3]], "minilm", batch_size=1)
    np.testing.assert_allclose(alone, features[:3], atol=1e-5)
