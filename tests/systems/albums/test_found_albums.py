"""Albums are found in photographs of covers and lists, and in listings."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.systems.albums.pictures import Drawn, pictures

from jobtable.errors import ValueRefusedError
from jobtable.systems.albums.found_albums import FoundAlbum, find_albums, read_image

PICTURES = pictures()


def plain(text: str) -> str:
    """A name without case, spaces and punctuation."""
    return re.sub(r"\W", "", text.lower())


@pytest.fixture(scope="module")
def found() -> dict[str, list[FoundAlbum]]:
    return {name: find_albums(read_image(drawn.content)).albums for name, drawn in PICTURES.items()}


def test_at_least_nine_in_ten_titles_and_artists_and_years_are_found(found: dict[str, list[FoundAlbum]]) -> None:
    def share(pick: int) -> float:
        hits = total = 0
        for name, drawn in PICTURES.items():
            there = {plain(str((each.artist, each.title, each.year)[pick])) for each in found[name]}
            asked = [plain(str(album[pick])) for album in drawn.albums]
            hits, total = hits + sum(each in there for each in asked), total + len(asked)
        return hits / total

    assert [share(pick) >= 0.9 for pick in (0, 1, 2)] == [True, True, True], found


def test_nothing_is_found_twice_or_made_up(found: dict[str, list[FoundAlbum]]) -> None:
    assert {name: len(each) for name, each in found.items()} == {n: len(d.albums) for n, d in PICTURES.items()}


def test_each_album_has_its_place_in_the_picture(found: dict[str, list[FoundAlbum]]) -> None:
    quarters = set()
    for each in found["four covers"]:
        assert each.region is not None
        assert min(each.region.width, each.region.height) > 100
        quarters.add((each.region.x > 850, each.region.y > 850))
    assert len(quarters) == 4
    tops = [each.region.y for each in found["list"] if each.region is not None]
    assert tops == sorted(tops)


def test_the_pictures_are_the_same_each_time() -> None:
    again: dict[str, Drawn] = pictures()
    assert again == PICTURES


def test_a_listing_names_albums_with_and_without_years() -> None:
    found = find_albums(
        "Pink Floyd - Animals (1977)\nno album\nThe Beatles \u2013 Abbey Road\nNobody - Nothing (1066)\n"
    )
    assert found.albums == [FoundAlbum("Pink Floyd", "Animals", 1977), FoundAlbum("The Beatles", "Abbey Road")]
    assert [each.partition(" ")[2][:1] for each in found.skipped] == ["2", "4"]
    table = find_albums("Artist,Album,Year\nKraftwerk,Autobahn,1974\n,Nameless,1990\n")
    assert table.albums == [FoundAlbum("Kraftwerk", "Autobahn", 1974)]
    assert len(table.skipped) == 1


def test_what_is_neither_picture_nor_text_is_refused() -> None:
    with pytest.raises(ValueRefusedError, match="neither a picture nor text"):
        read_image(b"\xfe\x00\xff")


def test_without_the_extra_one_line_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['rapidocr'] = None\n"
        "from jobtable.systems.albums.found_albums import read_image\n"
        "assert read_image(b'A - B (1990)')\n"
        "try: read_image(b'\\x89PNG')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "MissingExtraError pictures need the extra 'vision': pip install 'jobtable[vision]'\n"
