"""Five pictures of records: printed covers, a shelf and a list, turned and noisy. The same bytes each time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

Named = tuple[str, str, int | None]
"""Artist, title and, if it is printed, the year."""


@dataclass(frozen=True)
class Drawn:
    """A picture and the albums that it shows."""

    content: bytes
    albums: tuple[Named, ...]


LIST: tuple[Named, ...] = (
    ("Miles Davis", "Kind of Blue", 1959),
    ("The Beatles", "Abbey Road", 1969),
    ("Pink Floyd", "The Dark Side of the Moon", 1973),
    ("Joni Mitchell", "Blue", 1971),
    ("Kraftwerk", "Trans-Europe Express", 1977),
    ("Fela Kuti", "Zombie", 1976),
    ("Kate Bush", "Hounds of Love", 1985),
    ("Talking Heads", "Remain in Light", 1980),
    ("Nina Simone", "Pastel Blues", 1965),
    ("Massive Attack", "Mezzanine", 1998),
)
GRID: tuple[Named, ...] = (
    ("Radiohead", "OK Computer", 1997),
    ("Portishead", "Dummy", 1994),
    ("Patti Smith", "Horses", 1975),
    ("Television", "Marquee Moon", 1977),
)


def cover(artist: str, title: str, year: int | None, *, ink: str, paper: str, size: int = 800) -> Image.Image:
    """Draw a cover: the artist above, the title large, the year and small print below."""
    image = Image.new("RGB", (size, size), paper)
    draw = ImageDraw.Draw(image)
    draw.ellipse((size * 0.3, size * 0.42, size * 0.7, size * 0.82), outline=ink, width=6)
    _centred(draw, artist, size * 0.12, size * 0.062, ink, size)
    _centred(draw, title.upper(), size * 0.24, size * 0.105 if len(title) < 14 else size * 0.07, ink, size)
    if year is not None:
        _centred(draw, f"STEREO  {year}", size * 0.9, size * 0.035, ink, size)
    return image


def _centred(draw: ImageDraw.ImageDraw, text: str, top: float, points: float, ink: str, size: int) -> None:
    font = ImageFont.load_default(points)
    draw.text(((size - draw.textlength(text, font=font)) / 2, top), text, fill=ink, font=font)


def shelf_list(albums: Sequence[Named] = LIST) -> Image.Image:
    """Draw a typed list of what stands on a shelf."""
    image = Image.new("RGB", (1100, 130 + 74 * len(albums)), "#f4efe2")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(34)
    for number, (artist, title, year) in enumerate(albums):
        draw.text((70, 70 + 74 * number), f"{artist} - {title} ({year})", fill="#26221c", font=font)
    return image


def photographed(image: Image.Image, degrees: float, *, seed: int, blur: float = 0.6, noise: float = 14.0) -> bytes:
    """Turn a picture, blur it and add the grain of a camera."""
    turned = image.rotate(degrees, expand=True, fillcolor="#8a8378", resample=Image.Resampling.BICUBIC)
    pixels = np.asarray(turned.filter(ImageFilter.GaussianBlur(blur)), dtype=np.float32)
    grain = np.random.default_rng(seed).normal(0.0, noise, pixels.shape)
    stored = io.BytesIO()
    Image.fromarray(np.clip(pixels + grain, 0, 255).astype(np.uint8)).save(stored, "JPEG", quality=85)
    return stored.getvalue()


def pictures() -> dict[str, Drawn]:
    """Draw all five."""
    upright = ("David Bowie", "Low", 1977)
    turned = ("Marvin Gaye", "What's Going On", 1971)
    upside_down = ("Bjork", "Homogenic", None)
    grid = Image.new("RGB", (1700, 1700), "#5b4a3a")
    colours = (("white", "#7a1f1f"), ("#f5d76e", "#1c2833"), ("#1b1b1b", "#d5d8dc"), ("white", "#1e4d2b"))
    for number, (album, (ink, paper)) in enumerate(zip(GRID, colours, strict=True)):
        each = cover(*album, ink=ink, paper=paper, size=780)
        grid.paste(each, (40 + 840 * (number % 2), 40 + 840 * (number // 2)))
    return {
        "cover": Drawn(photographed(cover(*upright, ink="#f7f3e8", paper="#a04000"), 3, seed=1), (upright,)),
        "turned cover": Drawn(photographed(cover(*turned, ink="#111111", paper="#c9d6df"), 90, seed=2), (turned,)),
        "upside down": Drawn(
            photographed(cover(*upside_down, ink="white", paper="#2c3e50"), 180, seed=3), (upside_down,)
        ),
        "list": Drawn(photographed(shelf_list(), -4, seed=4, noise=18), LIST),
        "four covers": Drawn(photographed(grid, 270, seed=5, noise=10), GRID),
    }
