"""What becomes of an album between the image and its price: pure functions of albums, answers and a catalogue."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from jobtable.systems.albums.entities import Album, AlbumData, Execution, Region
from jobtable.systems.albums.found_albums import UNKNOWN_ARTIST, FoundAlbum
from jobtable.systems.albums.record_catalogues import Catalogue

NO_PRICE = "none: "
"""How a price source starts that says why there is no price."""


def albums_of(execution: Execution, found: Iterable[FoundAlbum]) -> list[Album]:
    """Return the records of the albums that were found, numbered from 1."""
    return [
        Album(
            execution_id=execution.execution_id,
            workflow_type=execution.workflow_type,
            album_index=number,
            artist=each.artist,
            album_name=each.title,
            year=each.year,
            year_original=each.year,
            image_region=None if each.region is None else Region(**each.region._asdict()),
            created_at=execution.created_at,
            updated_at=execution.created_at,
        )
        for number, each in enumerate(found, start=1)
    ]


def check_year(album: Album, catalogue: Catalogue | None) -> Album:
    """Return an album with the year, and a missing artist, that the catalogue knows; without one nothing is valid."""
    found = None if catalogue is None else catalogue.find(album.artist, album.album_name)
    if found is None and catalogue is not None:  # on a cover either name may be the larger one
        turned = catalogue.find(album.album_name, album.artist)
        if turned is not None:
            album, found = album.replace(artist=album.album_name, album_name=album.artist), turned
    if found is None or found.year is None:
        return album.replace(year_validated=False)
    return album.replace(year=found.year, year_validated=True)


def ask(albums: Iterable[Album]) -> list[AlbumData]:
    """Return what a person is asked about."""
    return [AlbumData(**{name: getattr(album, name) for name in AlbumData.model_fields}) for album in albums]


def apply_answer(
    albums: Iterable[Album], answer: Iterable[AlbumData], answered_at: datetime
) -> tuple[list[Album], list[Album]]:
    """Return the albums as a person corrected them, and those that the answer leaves out."""
    said = {album.album_index: album for album in answer}
    confirmed, removed = [], []
    for album in albums:
        each = said.get(album.album_index)
        if each is None:
            removed.append(album)
            continue
        names = {"album_name": each.album_name, "artist": each.artist, "year": each.year}
        confirmed.append(album.replace(**names, year_validated=each.year is not None, updated_at=answered_at))
    return confirmed, removed


def price(album: Album, catalogue: Catalogue | None, problem: str | None = None) -> Album:
    """Return an album with the price that the catalogue knows, or with why there is none."""
    if problem is not None or catalogue is None:
        return _without_price(album, problem or "no catalogue is configured")
    record = None if album.artist == UNKNOWN_ARTIST else catalogue.find(album.artist, album.album_name)
    if record is None:
        return _without_price(album, f"{catalogue.name} does not have this album")
    found = catalogue.price(record)
    if found is None:
        return _without_price(album, f"{catalogue.name} has no price of this album")
    if found.amount <= 0:
        return _without_price(album, f"{catalogue.name} has a price of {found.amount:g}")
    # An album of another year may be another album of this name.
    is_same_year = record.year is None or album.year is None or record.year == album.year
    confidence = found.confidence if is_same_year else found.confidence / 2
    return album.replace(price_estimate=found.amount, price_confidence=round(confidence, 3), price_source=found.source)


def _without_price(album: Album, why: str) -> Album:
    return album.replace(price_estimate=None, price_confidence=None, price_source=f"{NO_PRICE}{why}"[:200])
