"""A generated product catalogue in SQLite with traces of age: undeclared keys, leftovers, dead columns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

_SCHEMA = """
CREATE TABLE schema_version (version TEXT NOT NULL);
CREATE TABLE tmp_import_2019 (line TEXT);
CREATE TABLE category (
    cat_id INTEGER PRIMARY KEY, cat_name TEXT NOT NULL, parent_cat_id INTEGER REFERENCES category (cat_id)
);
CREATE TABLE supplier (sup_id INTEGER PRIMARY KEY, sup_name TEXT NOT NULL, country_cd TEXT NOT NULL, email_addr TEXT);
CREATE TABLE product (
    prod_id INTEGER PRIMARY KEY, sku TEXT NOT NULL UNIQUE, prod_name TEXT NOT NULL, descr TEXT,
    cat_id INTEGER NOT NULL REFERENCES category (cat_id), sup_id INTEGER REFERENCES supplier (sup_id),
    is_active TEXT NOT NULL, weight_kg REAL, created_ts TEXT NOT NULL, legacy_flag TEXT
);
CREATE INDEX product_by_category ON product (cat_id);
CREATE TABLE product_price (
    price_id INTEGER PRIMARY KEY, prod_id INTEGER NOT NULL REFERENCES product (prod_id),
    currency_cd TEXT NOT NULL, amount_cents INTEGER NOT NULL, valid_from TEXT NOT NULL
);
CREATE TABLE product_rel (
    rel_id INTEGER PRIMARY KEY, from_prod_id INTEGER NOT NULL REFERENCES product (prod_id),
    to_prod_id INTEGER NOT NULL REFERENCES product (prod_id), rel_type TEXT NOT NULL
);
-- stock_level.prod_id is an undeclared reference to a product, which the analysis must find.
CREATE TABLE stock_level (stock_id INTEGER PRIMARY KEY, prod_id INTEGER NOT NULL, warehouse_cd TEXT, qty INTEGER);
"""
_COUNTRIES = ("DE", "FR", "IT", "PL", "SE", "US")
_GOODS = ("Lamp", "Chair", "Router", "Cable", "Phone", "Desk", "Sensor", "Battery")


def create_catalogue(path: Path, *, products: int = 500, seed: int = 1) -> None:
    """Write a new catalogue; the same seed yields the same rows. FileExistsError if the file exists."""
    if path.exists():
        raise FileExistsError(f"{path} already exists")
    chance = Random(seed)  # noqa: S311 - guards nothing
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(_SCHEMA)
        connection.execute("INSERT INTO schema_version VALUES ('4.17')")
        connection.executemany("INSERT INTO category VALUES (?, ?, ?)", _categories())
        connection.executemany("INSERT INTO supplier VALUES (?, ?, ?, ?)", _suppliers(chance))
        connection.executemany("INSERT INTO product VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _products(products, chance))
        connection.executemany("INSERT INTO product_price VALUES (?, ?, ?, ?, ?)", _prices(products, chance))
        connection.executemany("INSERT INTO product_rel VALUES (?, ?, ?, ?)", _relations(products, chance))
        connection.executemany("INSERT INTO stock_level VALUES (?, ?, ?, ?)", _stock(products, chance))


def _categories() -> Iterator[tuple[object, ...]]:
    for number in range(1, 25):
        yield number, f"Category {number}", None if number <= 4 else (number - 1) // 4


def _suppliers(chance: Random) -> Iterator[tuple[object, ...]]:
    for number in range(1, 31):
        email = f"orders@supplier{number}.example" if chance.random() < 0.8 else None
        yield number, f"Supplier {number}", chance.choice(_COUNTRIES), email


def _products(count: int, chance: Random) -> Iterator[tuple[object, ...]]:
    for number in range(1, count + 1):
        name = f"{chance.choice(_GOODS)} {number}"
        description = f"{name}, \u201ctried and tested\u201d" if chance.random() < 0.9 else None
        supplier = chance.randint(1, 30) if chance.random() < 0.95 else None
        weight = round(chance.uniform(0.05, 40), 3) if chance.random() < 0.9 else None
        created = f"20{chance.randint(10, 24)}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}T08:00:00Z"
        active = "Y" if chance.random() < 0.85 else "N"
        sku = f"{name[:3].upper()}-{number:06d}"
        yield number, sku, name, description, chance.randint(1, 24), supplier, active, weight, created, None


def _prices(products: int, chance: Random) -> Iterator[tuple[object, ...]]:
    number = 0
    for product in range(1, products + 1):
        for currency in ("EUR", "USD")[: chance.randint(1, 2)]:
            number += 1
            yield number, product, currency, chance.randint(99, 250_000), "2024-01-01"


def _relations(products: int, chance: Random) -> Iterator[tuple[object, ...]]:
    for number in range(1, products // 3 + 1):
        yield number, chance.randint(1, products), chance.randint(1, products), chance.choice(("accessory", "spare"))


def _stock(products: int, chance: Random) -> Iterator[tuple[object, ...]]:
    for number in range(1, products + 1):
        yield number, number, chance.choice(("BER", "LYS")), chance.randint(0, 400)
