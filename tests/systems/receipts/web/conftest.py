"""The pages of receipts, with a world of their own."""

from tests.web.shown import page_fixtures

world, served, pages, watched = page_fixtures("receipts")
