"""Tokens: valid until they expire or are revoked, and never stored readable."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.access.entities import AccessToken, Role
from jobtable.access.tokens import Tokens
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import NotFoundError, ValueRefusedError
from jobtable.jobs.stored.entities import main
from jobtable.store import Store
from jobtable.testing import FakeClock


@pytest.fixture
def tokens(each_store: Store) -> Tokens:
    each_store.tables.create(main)
    return Tokens(each_store)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def timed(clock: FakeClock) -> Iterator[Tokens]:
    """Tokens whose time the test makes pass."""
    with Store(EmbeddedBackend(None, clock=clock), clock=clock) as store:
        store.tables.create(main)
        yield Tokens(store, clock=clock)


def test_a_token_is_found_until_it_is_revoked(tokens: Tokens) -> None:
    new = tokens.create(Role.READ, name="dashboards", created_by="ada")
    assert tokens.find_valid(new.text) == new.record
    assert list(tokens.list()) == [new.record]
    revoked = tokens.revoke(new.record.token_id)
    assert tokens.revoke(new.record.token_id) == revoked
    assert (tokens.state_of(new.record), tokens.state_of(revoked)) == ("valid", "revoked")
    assert tokens.find_valid(new.text) is None
    with pytest.raises(NotFoundError, match="none"):
        tokens.revoke("none")


def test_a_token_ends_at_its_time(timed: Tokens, clock: FakeClock) -> None:
    new = timed.create(Role.WORKER, expires_in=timedelta(days=30))
    clock.advance(timedelta(days=30).total_seconds() - 1)
    assert timed.find_valid(new.text) is not None
    clock.advance(1)
    assert timed.find_valid(new.text) is None
    assert timed.state_of(new.record) == "expired"
    with pytest.raises(ValueRefusedError, match="expires_in must be positive"):
        timed.create(Role.READ, expires_in=timedelta(0))


def test_a_token_keeps_its_time_with_a_server_whose_clock_was_ahead(timed: Tokens, clock: FakeClock) -> None:
    new = timed.create(Role.READ, expires_in=timedelta(hours=1))
    right = clock.now()
    clock.set(right + timedelta(days=1))
    assert timed.find_valid(new.text) is None
    clock.now()
    clock.set(right)
    assert timed.find_valid(new.text) is not None
    assert timed.create(Role.READ, expires_in=timedelta(hours=1)).record.expires_at == right + timedelta(hours=1)


def test_the_records_of_tokens_that_open_nothing_any_more_do_not_pile_up() -> None:
    """Where each run makes a token of its own, nobody could find those that count in the list."""
    clock = FakeClock()
    with Store(backend := EmbeddedBackend(None, clock=clock), clock=clock) as store:
        store.tables.create(main)
        tokens = Tokens(store, clock=clock)
        lasting = tokens.create(Role.READ, name="lasting")
        revoked = tokens.create(Role.READ, name="revoked")
        tokens.create(Role.READ, name="expired", expires_in=timedelta(days=1))
        tokens.revoke(revoked.record.token_id)

        def listed_after(days: int) -> set[str]:
            clock.advance(timedelta(days=days).total_seconds())
            backend._storage.keep_up()
            return {token.name for token in tokens.list()}

        assert listed_after(days=89) == {"lasting", "revoked", "expired"}
        assert listed_after(days=3) == {"lasting"}
        assert tokens.find_valid(revoked.text) is None
        assert tokens.find_valid(lasting.text) is not None


def test_only_a_digest_is_stored(tokens: Tokens) -> None:
    new = tokens.create(Role.FULL)
    item = AccessToken.__schema__.codec.encode(new.record)
    secret = new.text.split("_", 2)[2]  # which may have this sign itself
    assert secret not in str(item)
    assert len(new.record.secret_sha256) == 64


@given(text=st.text() | st.from_regex(r"jt_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", fullmatch=True))
def test_no_other_text_is_a_token(text: str) -> None:
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(main)
        tokens = Tokens(store)
        tokens.create(Role.FULL)
        assert tokens.find_valid(text) is None
