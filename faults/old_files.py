"""Files as older versions have left them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_LATER_TABLES = ("tokens", "fillings", "restores", "backups")


def make_first_format(path: Path) -> None:
    """Turn a database that nobody has open into what the first version would have made of it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for table in _LATER_TABLES:
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE meta SET value = 1 WHERE name = 'format'")
