"""`make reference`: write the generated pages of the documentation."""

from __future__ import annotations

from jobtable import reference
from jobtable.app import Services
from jobtable.cli import reference as cli_reference
from jobtable.settings import Settings
from jobtable.web import reference as api_reference
from jobtable.web.application import create_app
from tests.access_patterns import measurement

folder = measurement.PAGE.parent
(folder / "entities.md").write_text(reference.render_page())
(folder / "cli.md").write_text(cli_reference.render_page())
with Services.open("memory:") as services:
    (folder / "rest-api.md").write_text(api_reference.render_page(create_app(services, Settings())))
measurement.PAGE.write_text(measurement.render())
