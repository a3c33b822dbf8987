"""The command line, servers and a browser, for the tests of every system."""

from tests.cli.conftest import cli
from tests.remote.conftest import remote, served, work
from tests.web.conftest import browser, guarded, open_server, serve

__all__ = ["browser", "cli", "guarded", "open_server", "remote", "serve", "served", "work"]
