"""The pages of albums, with a world of their own."""

from tests.web.shown import page_fixtures

world, served, pages, watched = page_fixtures("albums")
