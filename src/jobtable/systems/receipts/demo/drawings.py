"""Invented receipts: their words, the box of each word, and a picture."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from random import Random
from xml.sax.saxutils import escape

WIDTH, MARGIN, LINE_HEIGHT, FONT_SIZE = 420, 28, 26, 17
_LETTER_WIDTH = 0.6 * FONT_SIZE
_COLUMNS = int((WIDTH - 2 * MARGIN) / _LETTER_WIDTH)
_TAX = Decimal("0.07")
_SHOPS = (
    ("CORNER BAKERY", "12 Mill Lane", "555-0142"),
    ("GREEN GROCER", "3 Market Square", "555-0199"),
    ("BOOKS & BEANS", "77 Harbour Street", "555-0107"),
)
_GOODS = (
    ("Rye bread", "3.40"),
    ("Butter croissant", "2.10"),
    ("Apples 1kg", "2.95"),
    ("Ground coffee", "6.80"),
    ("Oat milk", "2.25"),
    ("Notebook", "4.50"),
    ("Tomatoes", "3.15"),
    ("Goat cheese", "5.60"),
    ("Olive oil", "8.90"),
)


@dataclass(frozen=True)
class DrawnWord:
    """A word and its box in pixels, from the top left corner of the picture."""

    line: int
    number: int
    text: str
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Drawing:
    """A drawn receipt."""

    merchant: str
    words: tuple[DrawnWord, ...]
    width: int
    height: int

    def svg(self) -> bytes:
        """Return the picture."""
        texts = "".join(
            f'<text x="{word.left:.1f}" y="{word.bottom - 7:.1f}" textLength="{word.right - word.left:.1f}">'
            f"{escape(word.text)}</text>"
            for word in self.words
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}">'
            f'<rect width="100%" height="100%" fill="#fdfcf7"/>'
            f'<g font-family="monospace" font-size="{FONT_SIZE}" fill="#222">{texts}</g></svg>'
        ).encode()


def draw(number: int) -> Drawing:
    """Return the receipt with this number, always the same. Every third one has a wrong total."""
    random = Random(number)  # noqa: S311 - not a secret
    merchant, address, phone = _SHOPS[number % len(_SHOPS)]
    goods = random.sample(_GOODS, k=random.randint(3, 5))
    subtotal = sum((Decimal(price) for _, price in goods), Decimal())
    tax = (subtotal * _TAX).quantize(Decimal("0.01"))
    total = subtotal + tax + (Decimal("1.00") if number % 3 == 2 else 0)
    lines = [
        merchant.center(_COLUMNS).rstrip(),
        address.center(_COLUMNS).rstrip(),
        f"Tel {phone}".center(_COLUMNS).rstrip(),
        f"2025-10-{random.randint(10, 28)} {random.randint(8, 19)}:{random.randint(10, 59)}",
        "",
        *(_row(name, price) for name, price in goods),
        "",
        _row("Subtotal", str(subtotal)),
        _row("Tax 7%", str(tax)),
        _row("TOTAL", str(total)),
        "",
        "Thank you!".center(_COLUMNS).rstrip(),
    ]
    words = tuple(word for line, text in enumerate(lines, start=1) for word in _words(line, text))
    return Drawing(merchant, words, WIDTH, 2 * MARGIN + LINE_HEIGHT * len(lines))


def _row(left: str, right: str) -> str:
    return f"{left}{right.rjust(_COLUMNS - len(left))}"


def _words(line: int, text: str) -> list[DrawnWord]:
    words, start = [], 0
    for number, word in enumerate(text.split(), start=1):
        start = text.index(word, start)
        left = MARGIN + start * _LETTER_WIDTH
        top = MARGIN + (line - 1) * LINE_HEIGHT
        words.append(DrawnWord(line, number, word, left, top, left + len(word) * _LETTER_WIDTH, top + LINE_HEIGHT - 2))
        start += len(word)
    return words
