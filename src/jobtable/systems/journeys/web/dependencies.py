"""What the routes of the system depend on."""

from __future__ import annotations

from typing import Annotated

from jobtable.systems.journeys.service import Journeys
from jobtable.web.dependencies import service

TheJourneys = Annotated[Journeys, service(Journeys)]
