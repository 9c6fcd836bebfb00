"""The caption decoder of ZOC, on tiny models with random weights."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_models import save_text_model

from openset import ZOC, load
from openset.features.captions import PROMPT, embed_names, propose_embeddings, propose_names

D = 8
IMAGES = np.random.default_rng(0).normal(size=(5, D))


SPECIAL = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}


@pytest.fixture(scope="session")
def clip_text(tmp_path_factory):
    from transformers import CLIPTextConfig, CLIPTextModelWithProjection

    directory = tmp_path_factory.mktemp("clip") / "text"
    size = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "projection_dim": D}
    return str(save_text_model(directory, CLIPTextModelWithProjection, CLIPTextConfig, **size, **SPECIAL))


@pytest.fixture(scope="session")
def decoder(tmp_path_factory):
    from transformers import BertGenerationConfig, BertGenerationDecoder

    directory = tmp_path_factory.mktemp("captions") / "decoder"
    size = {"hidden_size": 2 * D, "intermediate_size": 16, "num_hidden_layers": 1, "initializer_range": 0.7}
    attention = {"is_decoder": True, "add_cross_attention": True}
    return str(
        save_text_model(directory, BertGenerationDecoder, BertGenerationConfig, **size, **attention, **SPECIAL)
    )


def test_names_are_embedded_in_their_prompt(clip_text):
    import torch
    from transformers import AutoTokenizer, CLIPTextModelWithProjection

    tokenizer = AutoTokenizer.from_pretrained(clip_text)
    model = CLIPTextModelWithProjection.from_pretrained(clip_text).eval()
    with torch.no_grad():
        expected = model(**tokenizer([PROMPT.format("cat")], return_tensors="pt")).text_embeds.numpy()
    np.testing.assert_allclose(embed_names(clip_text, ["cat", "big house"])[:1], expected, atol=1e-5)


def test_a_model_that_is_no_clip_is_told(bert, vision):
    for folder, kind in ((bert, "bert"), (vision["vit"], "vit"), (vision["clip_vision"], "clip_vision_model")):
        with pytest.raises(ValueError, match=f"type '{kind}', not a CLIP.*pass as encoder .*clip-vit"):
            embed_names(str(folder), ["cat"])


def test_proposals_are_the_likeliest_tokens_of_a_greedy_caption(decoder):
    import torch
    from transformers import AutoTokenizer, BertGenerationDecoder

    tokenizer = AutoTokenizer.from_pretrained(decoder)
    model = BertGenerationDecoder.from_pretrained(decoder).eval()
    for image, proposed in zip(IMAGES, propose_names(decoder, IMAGES, ["Cat"], steps=3, top=20), strict=True):
        written, expected = [2], []
        for _ in range(3):
            seen = torch.tensor(np.concatenate([image, image]), dtype=torch.float32)[None, None]
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([written]), encoder_hidden_states=seen).logits[0, -1]
            order = logits.argsort(descending=True)[:20].tolist()
            expected += tokenizer.convert_ids_to_tokens(order)
            written.append(order[0])
            if order[0] == 3:
                break
        wanted = {w for w in expected if w and w.isalpha() and len(w) > 1 and w != "cat"}
        assert set(proposed) == wanted and len(proposed) == len(wanted)


def test_zoc_with_a_decoder_scores_saves_and_loads(decoder, clip_text, tmp_path):
    rows = np.random.default_rng(1).normal(size=(60, D))
    labels = np.repeat(["cat", "dog"], 30)
    model = ZOC(decoder=decoder, text_encoder=clip_text, fpr=0.1).fit(rows, labels, IMAGES)
    np.testing.assert_allclose(
        np.abs(np.sum(model.names_ * embed_names(clip_text, ["cat", "dog"]), axis=1)),
        np.linalg.norm(embed_names(clip_text, ["cat", "dog"]), axis=1),
    )
    scores = model.novelty_score(IMAGES)
    assert np.isfinite(scores).all() and len(set(scores)) == len(IMAGES)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").novelty_score(IMAGES), scores)
    vectors = propose_embeddings(decoder, clip_text, IMAGES, ["cat", "dog"])
    assert all(v.shape[1] == D for v in vectors)


def test_embeddings_of_another_model_are_told(decoder):
    with pytest.raises(ValueError, match="not a multiple of the embeddings' 5"):
        propose_names(decoder, np.ones((2, 5)))
