"""From texts to vectors."""

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
"""Any function from texts to an array with a row for each of them."""

DIMENSIONS = 50
TFIDF_MODEL = "tfidf-svd"
_DECIMALS = 6
"""More digits than these are noise of the arithmetic; they would only make items larger."""


@in_one_thread
def embed_tfidf(texts: Sequence[str], *, seed: int = 0, dimensions: int = DIMENSIONS) -> Floats:
    """Unit vectors from TF-IDF and a truncated SVD: texts with the same words are close. No words, a zero vector.

    The same texts and the same seed give the same vectors. There are at most `dimensions` of them, and never more
    than texts or words.
    """
    # scikit-learn has no types, and pyright takes the default of a parameter for all that it may be.
    vectorizer = TfidfVectorizer(analyzer=words_of, sublinear_tf=True)  # pyright: ignore[reportArgumentType]
    try:
        weights = vectorizer.fit_transform(texts)
    except ValueError:  # scikit-learn's answer when no text has a word
        return np.zeros((len(texts), 1))
    rank = min(dimensions, *weights.shape)
    left, singular, _ = randomized_svd(weights, rank, random_state=seed)
    vectors = left * singular
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 1e-9)
    rounded: Floats = np.round(unit, _DECIMALS) + 0.0  # plus 0.0 turns -0.0 into 0.0
    return rounded


def embed_with(function: Embed, texts: Sequence[str]) -> Floats:
    """The vectors that any function gives for the texts, checked: a row for each, all numbers finite."""
    vectors = np.asarray(function(texts), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not vectors.shape[1]:
        raise ValueRefusedError(
            f"{_name(function)} must give an array with a row for each of {len(texts)} texts, not {vectors.shape}"
        )
    if not np.isfinite(vectors).all():
        raise ValueRefusedError(f"{_name(function)} gave numbers that are not finite")
    return vectors


def load_embed(path: str) -> Embed:
    """The embedding function that `module:function` names."""
    module_name, _, name = current_path(path).partition(":")
    try:
        function: Embed = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueRefusedError(f"there is no embedding function {path}: write module:function ({error})") from error
    return function


def _name(function: Embed) -> str:
    return getattr(function, "__name__", repr(function))
