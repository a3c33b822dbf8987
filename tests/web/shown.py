"""Fixtures for the tests of one system's pages: a store with its things, a server on it, and clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser
from tests.web.browsing import Watched, watch
from tests.web.conftest import Served
from tests.web.world import World, make_world


def page_fixtures(system: str) -> tuple[Any, Any, Any, Any]:
    """The fixtures `world`, `served`, `pages` (what a browser without scripts gets) and `watched` (a real one)."""

    @pytest.fixture(scope="module")
    def world(tmp_path_factory: pytest.TempPathFactory) -> World:
        return make_world(tmp_path_factory.mktemp("world"), only=[system])

    @pytest.fixture(scope="module")
    def served(world: World) -> Iterator[Served]:
        server = Served(store=world.url)
        yield server
        server.stop()

    @pytest.fixture(scope="module")
    def pages(served: Served) -> httpx.Client:
        return served.client(Accept="text/html")

    @pytest.fixture
    def watched(browser: Browser, served: Served) -> Iterator[Watched]:
        yield from watch(browser, served)

    return world, served, pages, watched
