"""Loads the local model: `Worker(preload=["jobtable.assist.minilm.preloaded"])` does it once for all its jobs."""

from jobtable.assist.minilm.sentence_model import shared_model

shared_model()
