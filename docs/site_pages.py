"""Add the pages of the repository's root to the site, and list the decisions in its navigation."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PLACES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "explanations/architecture.md",
    "CONTRIBUTING.md": "explanations/contributing.md",
    "CHANGELOG.md": "reference/changelog.md",
}
_LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put every decision into the navigation, in the order of the numbers."""
    pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    explanations = config.nav[-1]["Explanations"]  # type: ignore[index]
    explanations[-1] = {"Decisions": ["decisions/index.md", *(f"decisions/{page.name}" for page in pages)]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root at their places."""
    for name, place in PLACES.items():
        files.append(File.generated(config, place, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links follow the pages that the site has elsewhere than the repository."""
    site_path = page.file.src_uri
    origin = next((name for name, place in PLACES.items() if place == site_path), f"docs/{site_path}")

    def follow(link: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join(os.path.dirname(origin), link[1]))
        if target not in PLACES and origin not in PLACES:
            return link[1]
        target = PLACES.get(target, target.removeprefix("docs/"))
        return os.path.relpath(target, os.path.dirname(site_path))

    return _LINK.sub(follow, markdown)
