"""What requests cost: list prices of models by kind of provider, in whole nanodollars."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date as Date  # noqa: N812 - a field is called date
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobtable.assist.providers import Usage
from jobtable.errors import SettingsError
from jobtable.jobs.submit.definition import refusal

NANODOLLARS = 1_000_000_000
"""In one US dollar."""
_MILLION = 1_000_000
_CENT = 10_000_000
_LEAST_SHOWN = 1_000
_VERSION = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_GEOGRAPHY = re.compile(r"^(us|us-gov|eu|apac|au|jp|global)\.")
_Dollars = Annotated[Decimal, Field(ge=0, le=1_000_000)]


def dollars(nanodollars: int) -> str:
    """Return an amount for people: at least cents, and as much more as it has down to a millionth."""
    whole, _, part = f"{Decimal(nanodollars) / NANODOLLARS:,.6f}".partition(".")
    return f"${whole}.{part.rstrip('0'):0<2}"


def rough_dollars(nanodollars: int) -> str:
    """Return an amount as lists show it: to a cent, or to three digits if it is below a dollar."""
    if 0 < nanodollars < _LEAST_SHOWN:
        return f"under {dollars(_LEAST_SHOWN)}"
    unit = _CENT if nanodollars >= NANODOLLARS else 10 ** max(len(str(nanodollars)) - 3, 0)
    return dollars((nanodollars + unit // 2) // unit * unit)


@dataclass(frozen=True)
class Price:
    """What a million tokens cost, in nanodollars, and the table that says so."""

    tokens_in: int
    tokens_out: int
    version: str
    long_above: int | None = None
    """With more tokens than these, a request has the prices of `long`."""
    long: tuple[int, int] = (0, 0)

    def of_request(self, tokens_in: int) -> Price:
        """Return the price of a request with so many tokens."""
        if self.long_above is None or tokens_in <= self.long_above:
            return Price(self.tokens_in, self.tokens_out, self.version)
        return Price(*self.long, self.version)

    def cost_of(self, usage: Usage) -> int:
        """Return the nanodollars of a usage, rounded up."""
        own = self.of_request(usage.tokens_in)
        return -(-(usage.tokens_in * own.tokens_in + usage.tokens_out * own.tokens_out) // _MILLION)


FREE = Price(0, 0, "free")
"""Of a model that runs in the worker itself."""


class _Tokens(BaseModel):
    """US dollars for a million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Dollars
    output: _Dollars = Decimal(0)

    def nanodollars(self, factor: Decimal) -> tuple[int, int]:
        return round(self.input * factor * NANODOLLARS), round(self.output * factor * NANODOLLARS)


class _LongTokens(_Tokens):
    above: Annotated[int, Field(ge=1)]


class _ModelPrice(_Tokens):
    long: _LongTokens | None = None
    batch: _Tokens | None = None
    """In a batch; by default half."""
    regional: Annotated[Decimal, Field(ge=1, le=10)] = Decimal(1)

    def price(self, version: str, *, is_batch: bool, is_global: bool) -> Price:
        factor = Decimal(1) if is_global else self.regional
        if is_batch and self.batch is not None:
            return Price(*self.batch.nanodollars(factor), f"{version}, batch")
        if is_batch:
            version, factor = f"{version}, batch", factor / 2
        if self.long is None:
            return Price(*self.nanodollars(factor), version)
        return Price(*self.nanodollars(factor), version, self.long.above, self.long.nanodollars(factor))


class _File(BaseModel):
    """A file of prices: a date, and a table of models for each kind of provider."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    date: Date
    models: dict[str, dict[str, _ModelPrice]]


@dataclass(frozen=True)
class PriceTable:
    """Prices by kind of provider and model; those of a user's own file come before the list prices."""

    files: tuple[tuple[str, _File], ...]

    @staticmethod
    def load(own: Path | None = None) -> PriceTable:
        """Read the list prices, and before them a file of the user's own, or raise SettingsError."""
        return PriceTable((_list_prices(),) if own is None else (("own", _read(own)), _list_prices()))

    def find(self, kind: str, model: str, *, is_batch: bool = False) -> Price | None:
        """Return the price of a model, or None if none is known; a local model is free.

        A name with a version, as in `gpt-4.1-2025-04-14`, has the price of the name without it; one on Bedrock with the
        prefix of a geography, as in `eu.amazon.nova-pro-v1:0`, that of the model.
        """
        if kind in ("local", "none"):
            return FREE
        is_global = model.startswith("global.")
        for name, file in self.files:
            known = file.models.get(kind, {})
            found = next((known[each] for each in _names_of(model) if each in known), None)
            if found is not None:
                return found.price(f"{name} {file.date}", is_batch=is_batch, is_global=is_global)
        return None


def _names_of(model: str) -> Iterable[str]:
    """Return the name of a model, and the same without its version or its geography."""
    return dict.fromkeys((model, _VERSION.sub("", model), _GEOGRAPHY.sub("", model)))


@cache
def _list_prices() -> tuple[str, _File]:
    return "list", _parsed(files("jobtable.assist").joinpath("prices.toml").read_text("utf-8"), "the list prices")


def _read(path: Path) -> _File:
    try:
        return _parsed(path.read_text("utf-8"), f"the prices in {path}")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the prices in {path}: {error}") from error


def _parsed(text: str, what: str) -> _File:
    try:
        return _File.model_validate(tomllib.loads(text, parse_float=Decimal))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{what} are not valid TOML: {error}") from error
    except ValidationError as error:
        raise SettingsError(str(refusal(what, error))) from error
