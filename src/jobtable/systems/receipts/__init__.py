"""Receipts: what OCR reads from images, and what models and people make of it."""
