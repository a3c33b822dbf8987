"""`make pictures`: take the pictures of the README from the demonstration, as it runs and when it has come to rest."""

from __future__ import annotations

import contextlib
import json
import tempfile
import time
from pathlib import Path
from urllib.error import HTTPError

from playwright.sync_api import Browser, sync_playwright
from tests.cli.test_up import Up, fetch, up
from tests.web.conftest import CHROMIUM

FOLDER = Path(__file__).parent.parent.parent / "docs" / "pictures"
MOST_BYTES = 200_000
"""A README that takes long to load is not read."""
_WIDTH = 1280
_START_SECONDS, _DEMO_SECONDS = 60, 600
_DRAWN_MILLISECONDS = 1500
"""How long charts take to be drawn."""


def main() -> None:
    """Run the demonstration in a folder of its own, and replace the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        up(Path(folder), "--demo", "--slots", "2") as running,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        _take(browser, running)
        browser.close()
        running.interrupt()
    for picture in FOLDER.glob("*.png"):
        size = picture.stat().st_size
        print(f"{picture.name}  {size // 1000} kB")
        if size > MOST_BYTES:
            raise SystemExit(f"{picture} has {size} bytes; {MOST_BYTES} are the most")


def _take(browser: Browser, running: Up) -> None:
    address = running.read_until("Jobtable is at", _START_SECONDS).split()[3]
    _wait_for_half_a_sweep(address)
    _shoot(browser, f"{address}/", "overview", height=920)
    running.read_until(r"^Sweep +COMPLETED", _DEMO_SECONDS)
    best = json.loads(fetch(f"{address}/api/v1/sweeps/demo-sweep"))["best"]["job_id"]
    _shoot(browser, f"{address}/jobs/{best}", "job", height=1205)
    _shoot(browser, f"{address}/sweeps/demo-sweep", "sweep", height=960)
    _shoot(browser, f"{address}/conversations/demo-town-hall?layer=1", "conversation", height=1050)
    _shoot(browser, f"{address}/journeys/JRN-DEMO", "journey", height=830, scheme_is_dark=True)


def _wait_for_half_a_sweep(address: str) -> None:
    deadline = time.monotonic() + _DEMO_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(HTTPError):  # until it is submitted
            sweep = json.loads(fetch(f"{address}/api/v1/sweeps/demo-sweep"))
            if sweep["completed"] + sweep["stopped"] > sweep["total"] / 2:
                return
        time.sleep(0.5)
    raise SystemExit("the sweep of the demonstration does not get on")


def _shoot(browser: Browser, url: str, name: str, *, height: int, scheme_is_dark: bool = False) -> None:
    context = browser.new_context(
        viewport={"width": _WIDTH, "height": height}, color_scheme="dark" if scheme_is_dark else "light"
    )
    page = context.new_page()
    page.goto(url)
    page.wait_for_timeout(_DRAWN_MILLISECONDS)
    page.screenshot(path=FOLDER / f"{name}.png")
    context.close()


if __name__ == "__main__":
    main()
