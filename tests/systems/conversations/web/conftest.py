"""The pages of conversations, with a world of their own."""

from tests.web.shown import page_fixtures

world, served, pages, watched = page_fixtures("conversations")
