"""Catalogues: files of one's own, and Discogs behind its rate limit."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.systems.albums.discogs_server import TOKEN, DiscogsServer

from jobtable.errors import SettingsError
from jobtable.systems.albums.discogs import Discogs
from jobtable.systems.albums.record_catalogues import (
    Catalogue,
    CatalogueUnavailable,
    Price,
    likeness,
    open_catalogue,
    record_likeness,
)
from jobtable.testing import FakeClock

ROWS = [
    ("Pink Floyd", "Animals", "1977", "31.46", "auction"),
    ("The Beatles", "Abbey Road", "1969", "18.5", ""),
    ("Kraftwerk", "Autobahn", "", "", ""),
]
COLUMNS = "artist,title,year,price,source"


def csv_file(folder: Path) -> Path:
    path = folder / "prices.csv"
    path.write_text("\n".join([COLUMNS.title(), *(",".join(row) for row in ROWS)]), encoding="utf-8-sig")
    return path


def sqlite_file(folder: Path) -> Path:
    path = folder / "prices.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TABLE records ({COLUMNS})")
        rows = [(a, t, int(y) if y else None, float(p) if p else None, s or None) for a, t, y, p, s in ROWS]
        database.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
        database.commit()
    return path


def opened(path: Path) -> Catalogue:
    catalogue = open_catalogue({"JOBTABLE_ALBUMS_CATALOGUE": str(path)})
    assert catalogue is not None
    return catalogue


@pytest.mark.parametrize("make", [csv_file, sqlite_file])
def test_a_file_knows_years_and_prices_of_names_that_are_read_a_little_wrong(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    catalogue = opened(make(tmp_path))
    found = catalogue.find("PINK FL0YD", "animals")
    assert found is not None
    assert (found.year, 0.8 < found.likeness < 1) == (1977, True)
    assert catalogue.price(found) == Price(31.46, found.likeness, "auction")
    exact = catalogue.find("Beatles", "Abbey Road!")
    assert exact is not None
    assert catalogue.price(exact) == Price(18.5, 1.0, catalogue.name)
    unpriced = catalogue.find("Kraftwerk", "Autobahn")
    assert unpriced is not None
    assert (unpriced.year, catalogue.price(unpriced)) == (None, None)
    assert catalogue.find("Pink Floyd", "Meddle") is None
    assert catalogue.find("The Kinks", "Animals") is None


def test_without_a_catalogue_there_is_none() -> None:
    assert open_catalogue({}) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("artist,title,price\nA,B,1", "has no column year"),
        ("artist,title,year,price\nA,B,seventy,1", "row 1 of the catalogue"),
        ("artist,title,year,price\nA,B,1970,cheap", "the price be a number"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(SettingsError, match=problem):
        opened(tmp_path / "c.csv")


def test_files_that_are_missing_or_lack_their_table_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read the catalogue"):
        opened(tmp_path / "missing.csv")
    with closing(sqlite3.connect(tmp_path / "empty.db")) as database:
        database.execute("CREATE TABLE other (x)")
    with pytest.raises(SettingsError, match="no such table"):
        opened(tmp_path / "empty.db")


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    path = csv_file(tmp_path)
    assert opened(path).find("Can", "Future Days") is None
    path.write_text(f"{COLUMNS}\nCan,Future Days,1973,40,\n")
    assert opened(path).find("Can", "Future Days") is not None


def test_names_are_alike_whatever_their_case_accents_and_articles() -> None:
    assert likeness("Bj\u00f6rk", "BJORK") == likeness("The Beatles", "beatles") == 1.0
    assert record_likeness("Blur", "Blur", "Blue", "Blur") == 0.0


# --- Discogs ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[DiscogsServer]:
    with DiscogsServer().running() as server:
        yield server


@pytest.fixture
def discogs(server: DiscogsServer, clock: FakeClock) -> Discogs:
    environment = {
        "JOBTABLE_ALBUMS_CATALOGUE": "discogs",
        "JOBTABLE_DISCOGS_TOKEN": TOKEN,
        "JOBTABLE_DISCOGS_URL": server.url,
    }
    catalogue = open_catalogue(environment, clock=clock)
    assert isinstance(catalogue, Discogs)
    return catalogue


def test_discogs_knows_the_year_of_the_first_release_and_a_suggested_price(
    discogs: Discogs, server: DiscogsServer
) -> None:
    found = discogs.find("Pink Floyd", "Animals")
    assert found is not None
    assert (found.year, found.likeness, found.id) == (1977, 1.0, "101")
    assert discogs.price(found) == Price(31.46, 1.0, "discogs-api")
    assert server.asked == ["/database/search", "/releases/101", "/masters/9", "/marketplace/price_suggestions/101"]
    assert all(agent.startswith("Jobtable/") for agent in server.agents)


def test_without_a_suggestion_the_lowest_price_counts_as_far_as_there_are_copies(discogs: Discogs) -> None:
    found = discogs.find("Beatles", "Abbey Road")
    assert found is not None
    assert discogs.price(found) == Price(18.5, 0.75, "discogs-api")


def test_what_discogs_does_not_know_has_no_year_and_no_price(discogs: Discogs) -> None:
    assert discogs.find("Portishead", "Dummy") is None
    found = discogs.find("Kraftwerk", "Autobahn")
    assert found is not None
    assert (found.year, discogs.price(found)) == (None, None)


def test_a_refusal_for_now_is_awaited(discogs: Discogs, server: DiscogsServer, clock: FakeClock) -> None:
    server.refusals = [(429, {"Retry-After": "7"}), (503, {})]
    before = clock.monotonic()
    assert discogs.find("Pink Floyd", "Animals") is not None
    assert len(server.asked) == 5
    assert 7 <= clock.monotonic() - before < 20


def test_a_window_without_requests_left_is_awaited(discogs: Discogs, server: DiscogsServer, clock: FakeClock) -> None:
    server.remaining = 1
    before = clock.monotonic()
    assert discogs.find("Beatles", "Abbey Road") is not None
    assert 60 <= clock.monotonic() - before < 70


def test_a_service_that_does_not_recover_is_named(discogs: Discogs, server: DiscogsServer) -> None:
    server.refusals = [(500, {})] * 9
    with pytest.raises(CatalogueUnavailable, match="Discogs failed with 500 at /database/search") as failed:
        discogs.find("Pink Floyd", "Animals")
    assert failed.value.retryable
    assert len(server.asked) == 5


def test_a_service_that_is_away_is_named(clock: FakeClock) -> None:
    with DiscogsServer().running() as gone:
        url = gone.url
    with pytest.raises(CatalogueUnavailable, match="no complete answer to /database/search"):
        Discogs(TOKEN, url, clock=clock).find("A", "B")


def test_a_token_that_is_missing_or_wrong_is_named(server: DiscogsServer, clock: FakeClock) -> None:
    with pytest.raises(SettingsError, match="needs JOBTABLE_DISCOGS_TOKEN"):
        open_catalogue({"JOBTABLE_ALBUMS_CATALOGUE": "discogs"})
    with pytest.raises(SettingsError, match="Discogs refused the token"):
        Discogs("wrong", server.url, clock=clock).find("A", "B")
    with pytest.raises(SettingsError, match="must start with https"):
        Discogs(TOKEN, "file:///etc/passwd")
