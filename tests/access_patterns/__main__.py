"""`make reference`: write the generated pages of the documentation."""

from __future__ import annotations

from jobtable import reference
from tests.access_patterns import measurement

page = measurement.PAGE.parent / "reference" / "entities.md"
page.parent.mkdir(exist_ok=True)
page.write_text(reference.render_page())
measurement.PAGE.write_text(measurement.render())
