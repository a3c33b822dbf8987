"""The results of OCR: images, the receipts on them, lines, words and letters."""

from __future__ import annotations

from jobtable.jobs.stored.entities import main
from jobtable.model import Attr, Entity, Key
from jobtable.systems.receipts.entities.record_bases import (
    ImageRecord,
    LetterRecord,
    LineRecord,
    ReceiptLetterRecord,
    ReceiptLineRecord,
    ReceiptRecord,
    ReceiptWordRecord,
    WordRecord,
)


class Image(ImageRecord, table=main, type="IMAGE"):
    """A photograph or scan. It is stored last, so an image that exists has its complete OCR result."""

    by_image = Key("IMAGE#{image_id}", "IMAGE", index="GSI1")


class ImageChange(Entity, table=main, type="IMAGE_CHANGE"):
    """The latest call that stores or deletes the contents of an image. It makes earlier calls fail."""

    key = Key("IMAGE#{image_id}", "CHANGE")

    image_id: str
    change_id: Attr[str]


class Line(LineRecord, table=main, type="LINE"):
    """A line of text on an image."""

    by_image = Key("IMAGE#{image_id}", "LINE#{line_id:05d}", index="GSI1")


class Word(WordRecord, table=main, type="WORD"):
    """A word of a line of an image."""


class Letter(LetterRecord, table=main, type="LETTER"):
    """A letter of a word of an image."""


class Receipt(ReceiptRecord, table=main, type="RECEIPT"):
    """A receipt that was found on an image and cut out of it."""

    by_image = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}", index="GSI1")
    everywhere = Key("RECEIPT", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}", index="GSI2")
    with_words = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}", index="GSI3")


class ReceiptLine(ReceiptLineRecord, table=main, type="RECEIPT_LINE"):
    """A line of a receipt."""


class ReceiptWord(ReceiptWordRecord, table=main, type="RECEIPT_WORD"):
    """A word of a line of a receipt."""

    everywhere = Key(
        "RECEIPT", "IMAGE#{image_id}#RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}", index="GSI2"
    )
    by_image = Key("IMAGE#{image_id}", "RECEIPT#{receipt_id:05d}#LINE#{line_id:05d}#WORD#{word_id:05d}", index="GSI3")


class ReceiptLetter(ReceiptLetterRecord, table=main, type="RECEIPT_LETTER"):
    """A letter of a word of a receipt."""
