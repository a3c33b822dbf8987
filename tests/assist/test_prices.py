"""List prices of models, and those of a user's own file."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.assist.prices import FREE, NANODOLLARS, Price, PriceTable
from jobtable.assist.providers import Usage
from jobtable.errors import SettingsError

TABLE = PriceTable.load()
LISTED = tomllib.loads(files("jobtable.assist").joinpath("prices.toml").read_text(), parse_float=Decimal)
TOKENS = st.integers(0, 10**9)


def in_dollars(price: Price | None) -> tuple[float, float]:
    assert price is not None
    return price.tokens_in / NANODOLLARS, price.tokens_out / NANODOLLARS


def test_every_listed_price_is_found() -> None:
    for kind, models in LISTED["models"].items():
        for model, listed in models.items():
            price = TABLE.find(kind, model)
            assert price is not None
            factor = listed.get("regional", 1)
            assert price.tokens_in == listed["input"] * factor * NANODOLLARS > 0, model
            assert price.tokens_out == listed.get("output", 0) * factor * NANODOLLARS, model
            assert price.version == f"list {LISTED['date']}"


@pytest.mark.parametrize(
    ("kind", "model", "price"),
    [
        ("openai", "gpt-4.1-mini", (0.40, 1.60)),
        ("openai", "gpt-4.1-mini-2025-04-14", (0.40, 1.60)),
        ("openai", "text-embedding-3-small", (0.02, 0)),
        ("bedrock", "amazon.nova-lite-v1:0", (0.06, 0.24)),
        ("bedrock", "us.amazon.nova-lite-v1:0", (0.06, 0.24)),
        ("bedrock", "eu.amazon.nova-2-lite-v1:0", (0.33, 2.75)),
        ("bedrock", "global.anthropic.claude-haiku-4-5-20251001-v1:0", (1.00, 5.00)),
        ("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", (1.10, 5.50)),
        ("bedrock", "anthropic.claude-haiku-4-5-20251001-v1:0", (1.10, 5.50)),
    ],
)
def test_a_version_and_a_geography_do_not_hide_a_price(kind: str, model: str, price: tuple[float, float]) -> None:
    assert in_dollars(TABLE.find(kind, model)) == price


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("openai", "llama3.2"),
        ("openai", "gpt-4.1-mini-tuned"),
        ("openai", "us.gpt-9"),
        ("bedrock", "gpt-4.1"),
        ("", ""),
    ],
)
def test_an_unknown_model_has_no_price(kind: str, model: str) -> None:
    assert TABLE.find(kind, model) is None


def test_a_local_model_is_free() -> None:
    assert TABLE.find("local", "all-MiniLM-L6-v2") == TABLE.find("none", "") == FREE


def test_a_batch_costs_half() -> None:
    batch = TABLE.find("openai", "gpt-4.1-mini", is_batch=True)
    assert in_dollars(batch) == (0.20, 0.80)
    assert batch is not None
    assert batch.version == f"list {LISTED['date']}, batch"


def test_a_long_request_has_its_own_price() -> None:
    price = TABLE.find("openai", "gpt-5.4")
    assert price is not None
    assert in_dollars(price.of_request(272_000)) == (2.50, 15.00)
    assert in_dollars(price.of_request(272_001)) == (5.00, 22.50)
    assert price.cost_of(Usage(300_000, 1000)) == 1_522_500_000
    assert price.of_request(300_000).cost_of(Usage(10, 0)) == 50_000, "it is fixed when the request is sent"


@given(price_in=TOKENS, price_out=TOKENS, tokens_in=TOKENS, tokens_out=TOKENS)
def test_a_cost_is_never_rounded_down(price_in: int, price_out: int, tokens_in: int, tokens_out: int) -> None:
    cost = Price(price_in, price_out, "").cost_of(Usage(tokens_in, tokens_out))
    exact = Decimal(price_in * tokens_in + price_out * tokens_out) / 1_000_000
    assert exact <= cost < exact + 1


def test_the_prices_of_an_own_file_come_first(tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    own.write_text(
        'date = 2026-01-02\n[models.openai]\n"gpt-4.1-mini" = { input = 0.30, output = 1.20, batch.input = 0.10 }\n'
        '"my-model" = { input = 0 }\n[models.ours]\n"x" = { input = 1 }\n'
    )
    table = PriceTable.load(own)
    assert in_dollars(table.find("openai", "gpt-4.1-mini")) == (0.30, 1.20)
    assert in_dollars(table.find("openai", "gpt-4.1-mini", is_batch=True)) == (0.10, 0)
    assert in_dollars(table.find("openai", "my-model")) == (0, 0)
    assert in_dollars(table.find("ours", "x")) == (1, 0)
    assert in_dollars(table.find("openai", "gpt-4o")) == (2.50, 10.00)
    found = table.find("openai", "my-model")
    assert found is not None
    assert found.version == "own 2026-01-02"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("date = [", "are not valid TOML"),
        ("[models]", "the date of the prices in"),
        ('date = 2026-01-02\n[models.openai]\n"m" = { input = -1 }', "the models.openai.m.input of the prices in"),
        ('date = 2026-01-02\n[models.openai]\n"m" = { output = 1 }', "the models.openai.m.input of the prices in"),
        (
            'date = 2026-01-02\n[models.openai]\n"m" = { input = 1, ouput = 1 }',
            "the models.openai.m.ouput of",
        ),
        (None, "cannot read the prices in"),
    ],
)
def test_an_invalid_file_of_prices_says_what_is_wrong(tmp_path: Path, text: str | None, problem: str) -> None:
    own = tmp_path / "prices.toml"
    if text is not None:
        own.write_text(text)
    with pytest.raises(SettingsError, match=problem):
        PriceTable.load(own)
