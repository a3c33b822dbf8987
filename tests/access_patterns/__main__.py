"""`make reference`: write the generated pages of the documentation."""

from __future__ import annotations

from jobtable import reference
from jobtable.cli import reference as cli_reference
from tests.access_patterns import measurement

docs = measurement.PAGE.parent
page = docs / "reference" / "entities.md"
page.parent.mkdir(exist_ok=True)
page.write_text(reference.render_page())
(docs / "cli.md").write_text(cli_reference.render_page())
measurement.PAGE.write_text(measurement.render())
