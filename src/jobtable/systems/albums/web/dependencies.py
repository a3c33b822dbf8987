"""What the routes of the system depend on."""

from __future__ import annotations

from typing import Annotated

from jobtable.systems.albums.service import AlbumWorkflows
from jobtable.web.dependencies import service

TheAlbums = Annotated[AlbumWorkflows, service(AlbumWorkflows)]
