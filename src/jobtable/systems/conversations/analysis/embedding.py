"""Embeddings: texts become vectors."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.extmath import randomized_svd

from jobtable.errors import ValueRefusedError
from jobtable.system import current_path
from jobtable.systems.conversations.analysis.keywords import words_of
from jobtable.systems.conversations.analysis.numerics import Floats, in_one_thread

Embed: TypeAlias = Callable[[Sequence[str]], Any]
"""A function from texts to an array with a row for each."""

DIMENSIONS = 50
TFIDF_MODEL = "tfidf-svd"
_DECIMALS = 6
"""Further digits are noise, and would only make items larger."""


@in_one_thread
def embed_tfidf(texts: Sequence[str], *, seed: int = 0, dimensions: int = DIMENSIONS) -> Floats:
    """Embed texts by TF-IDF and a truncated SVD: unit vectors, close for texts with the same words, 0 without words.

    The same texts and seed yield the same vectors. Their dimensions are at most `dimensions`, and at most the number of
    texts and of words.
    """
    # scikit-learn has no types, and pyright takes the default of a parameter for all that it may be.
    vectorizer = TfidfVectorizer(analyzer=words_of, sublinear_tf=True)  # pyright: ignore[reportArgumentType]
    try:
        weights = vectorizer.fit_transform(texts)
    except ValueError:  # no text has a word
        return np.zeros((len(texts), 1))
    rank = min(dimensions, *weights.shape)
    left, singular, _ = randomized_svd(weights, rank, random_state=seed)
    vectors = left * singular
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 1e-9)
    rounded: Floats = np.round(unit, _DECIMALS) + 0.0  # plus 0.0 turns -0.0 into 0.0
    return rounded


def embed_with(function: Embed, texts: Sequence[str]) -> Floats:
    """Embed texts with a function, and check the result: a row for each text, all numbers finite."""
    vectors = np.asarray(function(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
        raise ValueRefusedError(
            f"{_name(function)} must return an array with a row for each of {len(texts)} texts, not {vectors.shape}"
        )
    if not np.isfinite(vectors).all():
        raise ValueRefusedError(f"{_name(function)} returned numbers that are not finite")
    return vectors


def load_embed(path: str) -> Embed:
    """Import the embedding function of a `module:function` path."""
    module_name, _, name = current_path(path).partition(":")
    try:
        function: Embed = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueRefusedError(f"cannot load the embedding function {path!r} (module:function): {error}") from error
    return function


def _name(function: Embed) -> str:
    return getattr(function, "__name__", repr(function))
