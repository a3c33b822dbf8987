"""The ports of servers for tests."""

from __future__ import annotations

import random
import socket
from itertools import chain

import pytest

from jobtable.testing import servers


def test_a_port_on_which_a_server_is_about_to_listen_is_given_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with servers._reserved_ports(3) as taken:
        drawn = chain(taken, iter(lambda: random.randint(10_000, 32_767), None))
        monkeypatch.setattr(random, "randrange", lambda *_: next(drawn))
        assert not set(servers.free_ports(3)) & set(taken)


def test_a_port_on_which_somebody_listens_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        drawn = chain([listening.getsockname()[1]], iter(lambda: random.randint(10_000, 32_767), None))
        monkeypatch.setattr(random, "randrange", lambda *_: next(drawn))
        assert servers.free_port() != listening.getsockname()[1]
