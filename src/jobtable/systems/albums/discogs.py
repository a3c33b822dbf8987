"""Discogs as a catalogue: its search for years, its marketplace for prices, within its rate limit."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.client import HTTPException
from importlib.metadata import version
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.errors import SettingsError
from jobtable.store import Backoff
from jobtable.systems.albums.record_catalogues import CatalogueUnavailable, Price, Record, record_likeness

TOKEN, URL = "JOBTABLE_DISCOGS_TOKEN", "JOBTABLE_DISCOGS_URL"
ADDRESS = "https://api.discogs.com"
SOURCE = "discogs-api"
CONDITION = "Very Good Plus (VG+)"
"""The condition whose suggested price is taken."""
_WINDOW_SECONDS = 60.0
"""Discogs counts requests in a moving window of a minute."""
_TIMEOUT_SECONDS = 30.0
_MOST_ANSWER_BYTES = 5_000_000
_FEW_COPIES = 3
"""Of a lowest price, the confidence is halved if so many copies are for sale."""


class Discogs:
    """Asks Discogs. A request that is refused for now, or gets no answer, is repeated; then CatalogueUnavailable."""

    name = "discogs"

    def __init__(self, token: str, url: str = ADDRESS, *, clock: Clock = SYSTEM_CLOCK, attempts: int = 5) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise SettingsError(f"{URL} must start with https://, not {url!r}")
        self._url = url.rstrip("/")
        self._token = token
        self._clock = clock
        self._attempts = attempts
        self._lock = threading.Lock()
        self._free_at = 0.0

    @classmethod
    def of(cls, environment: Mapping[str, str], *, clock: Clock = SYSTEM_CLOCK) -> Discogs:
        """Make it from the environment."""
        if not environment.get(TOKEN):
            raise SettingsError(
                f"the catalogue discogs needs {TOKEN}; make a token at discogs.com, settings, developers"
            )
        return cls(environment[TOKEN], environment.get(URL) or ADDRESS, clock=clock)

    def find(self, artist: str, title: str) -> Record | None:
        query = urlencode({"type": "release", "artist": artist, "release_title": title, "per_page": 10})
        found: Record | None = None
        for each in self._ask(f"/database/search?{query}")["results"]:
            known_artist, _, known_title = str(each["title"]).partition(" - ")
            alike = record_likeness(artist, title, known_artist.rstrip("*0123456789() "), known_title)
            if alike > (found.likeness if found else 0.0):
                found = Record(known_artist, known_title, None, alike, str(each["id"]))
        return None if found is None else self._with_year(found)

    def _with_year(self, record: Record) -> Record:
        """Return a record with the year of the album, which is that of its first release."""
        release = self._ask(f"/releases/{quote(record.id)}")
        master = release.get("master_id")
        of = release if not master else self._ask(f"/masters/{int(master)}")
        return Record(record.artist, record.title, int(of.get("year") or 0) or None, record.likeness, record.id)

    def price(self, record: Record) -> Price | None:
        suggested = self._ask(f"/marketplace/price_suggestions/{quote(record.id)}", refused={}).get(CONDITION)
        if suggested and suggested["currency"] == "USD" and suggested["value"] > 0:
            return Price(round(float(suggested["value"]), 2), record.likeness, SOURCE)
        stats = self._ask(f"/marketplace/stats/{quote(record.id)}?curr_abbr=USD", refused={})
        lowest, copies = stats.get("lowest_price"), int(stats.get("num_for_sale") or 0)
        if not lowest or not copies or lowest["value"] <= 0:
            return None
        confidence = round(record.likeness * copies / (copies + _FEW_COPIES), 3)
        return Price(round(float(lowest["value"]), 2), confidence, SOURCE)

    def _ask(self, path: str, *, refused: dict[str, Any] | None = None) -> Any:
        """Return the JSON of an answer; `refused` for what Discogs does not have or does not allow to this user."""
        backoff = Backoff(attempts=self._attempts, first_seconds=1.0, most_seconds=_WINDOW_SECONDS, clock=self._clock)
        return backoff.retry(
            lambda: self._ask_once(path, refused), lambda error: isinstance(error, CatalogueUnavailable)
        )

    def _ask_once(self, path: str, refused: dict[str, Any] | None) -> Any:
        self._await_turn()
        headers = {"User-Agent": f"Jobtable/{version('jobtable')}", "Authorization": f"Discogs token={self._token}"}
        request = Request(self._url + path, headers=headers)  # noqa: S310 - the scheme was checked
        try:
            with urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - as above
                self._note_limit(answer.headers)
                return json.loads(answer.read(_MOST_ANSWER_BYTES))
        except HTTPError as error:
            with error:
                return self._refusal(error, path, refused)
        except (OSError, HTTPException, ValueError) as error:
            raise CatalogueUnavailable(
                f"Discogs sent no complete answer to {path.partition('?')[0]}: {error}"
            ) from error

    def _refusal(self, error: HTTPError, path: str, refused: dict[str, Any] | None) -> Any:
        asked = path.partition("?")[0]
        self._note_limit(error.headers)
        if error.code == 429:
            self._pause(float(error.headers.get("Retry-After") or 1.0))
            raise CatalogueUnavailable(f"Discogs allows no more requests for now ({asked})") from error
        if error.code >= 500:
            raise CatalogueUnavailable(f"Discogs failed with {error.code} at {asked}") from error
        if error.code == 401:
            raise SettingsError(f"Discogs refused the token; set {TOKEN}") from error
        if refused is not None and error.code in (403, 404):
            return refused
        raise CatalogueUnavailable(f"Discogs refused {asked} with {error.code}") from error

    # --- the rate limit ---------------------------------------------------------------------------------------------

    def _await_turn(self) -> None:
        with self._lock:
            wait = self._free_at - self._clock.monotonic()
        if wait > 0:
            self._clock.sleep(wait)

    def _note_limit(self, headers: Any) -> None:
        """Leave time before the next request if this window has none left."""
        limit, remaining = headers.get("X-Discogs-Ratelimit"), headers.get("X-Discogs-Ratelimit-Remaining")
        if limit and remaining is not None and int(remaining) <= 1:
            self._pause(_WINDOW_SECONDS / int(limit) if int(remaining) == 1 else _WINDOW_SECONDS)

    def _pause(self, seconds: float) -> None:
        with self._lock:
            self._free_at = max(self._free_at, self._clock.monotonic() + seconds)
