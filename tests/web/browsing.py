"""Pages in a real browser, for the tests."""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Browser, Page
from tests.web.conftest import Served


class Watched:
    """A page whose complaints are written down."""

    def __init__(self, browser: Browser, served: Served, width: int = 1280, scheme: str = "light") -> None:
        context = browser.new_context(
            base_url=served.url,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        context.set_default_timeout(20_000)
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self._note(message.type, message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._refuse_outside(request.url, served.url))

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _refuse_outside(self, url: str, own: str) -> None:
        if not url.startswith((own, "data:", "blob:")):
            self.complaints.append(f"a request to {url}")

    def close(self) -> None:
        self.page.context.close()


def watch(browser: Browser, served: Served) -> Iterator[Watched]:
    """A page on which nothing may go wrong."""
    shown = Watched(browser, served)
    yield shown
    shown.close()
    assert shown.complaints == []
