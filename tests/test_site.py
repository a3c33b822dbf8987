"""The documentation as a site: built strictly, complete, searchable, and without a request to another host."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import REQUIRE_ALL
from tests.web.conftest import browser

__all__ = ["browser"]

ROOT = Path(__file__).parent.parent
MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"
_SECONDS = 240

_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|audio|video|embed|use)\b[^>]*?\s(?:src|href|srcset)=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*\brel=["']?(?:canonical|next|prev)\b)[^>]*?\shref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|url\(["']?((?:https?:)?//[^"')]+)|@import\s+["']((?:https?:)?//[^"']+)"""
)
"""An address of another host that a browser would load by itself."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    if not MKDOCS.exists():
        (pytest.fail if REQUIRE_ALL else pytest.skip)("MkDocs is missing: run `make docs` first")
    folder = tmp_path_factory.mktemp("site")
    command = [str(MKDOCS), "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_SECONDS)
    assert done.returncode == 0, done.stderr
    assert "WARNING -" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the built site is served."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the class gives it
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(60_000)
    yield page
    page.close()


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    files = [file for kind in ("html", "css") for file in site.rglob(f"*.{kind}")]
    assert len(files) > 60
    loaded = {
        file.relative_to(site).as_posix(): found
        for file in files
        if (found := [match[0] for match in _LOADED.finditer(file.read_text())])
    }
    assert loaded == {}


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    assert {page.as_posix() for page in pages if not (site / page).exists()} == set()
    for place in ("index", "explanations/architecture", "explanations/contributing", "reference/changelog"):
        assert (site / f"{place}.html").exists(), place


def test_the_reference_documents_the_public_names(site: Path) -> None:
    for page, names in {
        "store": ["Store.get", "Store.query", "Backend.execute", "Query.first"],
        "model": ["Entity", "Table", "Key", "Condition"],
        "jobs": ["Jobs", "JobContext.metric", "Worker.run", "NewJob"],
        "errors": ["NotFoundError"],
    }.items():
        text = (site / "reference" / "python" / f"{page}.html").read_text()
        missing = [name for name in names if f'id="jobtable.{page}.{name}"' not in text]
        assert missing == [], page


@pytest.fixture
def requested(page: Page) -> list[str]:
    """The addresses that a page requests; other hosts cannot be reached."""
    page.route(re.compile("^https?://(?!127\\.0\\.0\\.1)"), lambda route: route.abort())
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    return urls


@pytest.mark.parametrize("served", [True, False], ids=["served", "opened as a file"])
def test_the_site_is_read_without_another_host(
    site: Path, address: str, page: Page, requested: list[str], *, served: bool
) -> None:
    base = address if served else site.as_uri()
    page.goto(f"{base}/index.html")
    for section in ("Start", "Guides", "Systems", "Reference", "Explanations"):
        page.locator(".md-tabs").get_by_role("link", name=section).click()
        expect(page.locator(".md-tabs__item--active")).to_have_text(re.compile(section))
    assert [url for url in requested if not url.startswith((base, "data:", "blob:"))] == []


def test_the_site_is_searched_without_another_host(address: str, page: Page, requested: list[str]) -> None:
    page.goto(f"{address}/index.html")
    search = page.get_by_role("textbox", name="Search")
    search.click()
    expect(page.get_by_text("Type to start searching")).to_be_visible(timeout=60_000)  # the index is loaded
    search.press_sequentially("heartbeat lease")  # the page listens to keys
    results = page.locator(".md-search-result__item")
    results.filter(has=page.get_by_role("heading", name="Workers", exact=True)).get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("Workers"))
    assert [url for url in requested if not url.startswith((address, "data:", "blob:"))] == []
