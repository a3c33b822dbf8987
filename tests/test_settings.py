"""Settings: by precedence, checked, each knowing where it comes from; and documented."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.errors import SettingsError
from jobtable.settings import Resolved, Settings, resolve, variable

DOCUMENTATION = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobtable.toml"


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    found = resolve({}, {}, tmp_path)
    assert found == Resolved(Settings(), dict.fromkeys(Settings.model_fields, "default"))


def test_flags_win_over_variables_over_the_file_over_defaults(file: Path) -> None:
    file.write_text('store = "file:from-file.db"\nuser = "from-file"\nslots = 2\n')
    environment = {"JOBTABLE_USER": "from-variable", "JOBTABLE_STORE": "file:from-variable.db"}
    found = resolve({"store": "file:from-flag.db", "user": None}, environment, file.parent)
    assert (found.settings.store, found.sources["store"]) == ("file:from-flag.db", "--store")
    assert (found.settings.user, found.sources["user"]) == ("from-variable", "JOBTABLE_USER")
    assert (found.settings.slots, found.sources["slots"]) == (2, str(file))
    assert (found.settings.port, found.sources["port"]) == (Settings().port, "default")


@pytest.mark.parametrize(
    ("flags", "objects"),
    [
        ({"store": "file:copy.db"}, None),
        ({"store": "memory:"}, None),
        ({"store": "file:production.db"}, "s3://production"),
        ({"store": "dynamodb://eu-central-1"}, "s3://production"),
        ({"store": "file:copy.db", "objects": "file:copies"}, "file:copies"),
        ({"objects": "file:copies"}, "file:copies"),
    ],
)
def test_objects_of_another_store_are_not_those_of_a_file(
    flags: dict[str, str], objects: str | None, tmp_path: Path
) -> None:
    environment = {"JOBTABLE_STORE": "file:production.db", "JOBTABLE_OBJECTS": "s3://production"}
    found = resolve(flags, environment, tmp_path)
    assert found.settings.objects == objects
    assert (found.sources["objects"] == "default") is (objects is None)


def test_a_variable_can_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("slots = 7")
    found = resolve({}, {"JOBTABLE_CONFIG": str(tmp_path / "other.toml")}, tmp_path)
    assert found.settings.slots == 7


def test_variables_are_read_as_what_they_stand_for(tmp_path: Path) -> None:
    environment = {
        "JOBTABLE_QUEUES": "gpu, default",
        "JOBTABLE_REQUIRE_TOKEN": "true",
        "JOBTABLE_PORT": "0",
        "JOBTABLE_LEASE_SECONDS": "2.5",
        "JOBTABLE_SLOTS": "",
    }
    settings = resolve({}, environment, tmp_path).settings
    assert settings.queues == ("gpu", "default")
    assert settings.require_token is True
    assert (settings.port, settings.lease_seconds, settings.slots) == (0, 2.5, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("slotss = 2", "unknown setting 'slotss'; settings are store, objects"),
        ('slots = "2"', "jobtable.toml, slots: invalid value '2': input should be a valid integer"),
        ("slots = 0", "slots: invalid value 0"),
        ("queues = []", "queues: invalid value (): write at least one name"),
        ('queues = "gpu"', 'queues: invalid value \'gpu\': write a list of names, as in ["gpu", "default"]'),
        ("store = 3", "store: invalid value 3"),
        ("[store]\nurl = 1", "store: invalid value {'url': 1}"),
        ("store =", "is not valid TOML"),
        ('[assist]\nprovidr = "x"', "assist.providr: unknown setting; settings are provider, "),
    ],
)
def test_what_is_wrong_in_the_file_is_told_in_one_line(file: Path, content: str, said: str) -> None:
    file.write_text(content)
    with pytest.raises(SettingsError) as raised:
        resolve({}, {}, file.parent)
    assert said in str(raised.value)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("environment", "flags", "said"),
    [
        ({"JOBTABLE_PORT": "http"}, {}, "JOBTABLE_PORT: invalid value 'http': input should be a valid integer"),
        ({"JOBTABLE_PORT": "65536"}, {}, "JOBTABLE_PORT: invalid value '65536'"),
        (
            {"JOBTABLE_QUEUES": "a,,b"},
            {},
            "JOBTABLE_QUEUES: invalid value ('a', '', 'b'): a name must have at least one",
        ),
        ({}, {"queues": ("",)}, "--queue: invalid value ('',): a name must have at least one character"),
        ({"JOBTABLE_CONFIG": "missing.toml"}, {}, "cannot read missing.toml: No such file or directory"),
        ({}, {"lease_seconds": 0.1}, "--lease-seconds: invalid value 0.1"),
    ],
)
def test_what_is_wrong_elsewhere_is_told_in_one_line(
    tmp_path: Path, environment: dict[str, str], flags: dict[str, object], said: str
) -> None:
    with pytest.raises(SettingsError) as raised:
        resolve(flags, environment, tmp_path)
    assert said in str(raised.value)


def test_a_file_that_cannot_be_read_is_not_passed_over(file: Path) -> None:
    file.symlink_to("nowhere")
    with pytest.raises(SettingsError, match=r"cannot read .*jobtable\.toml: No such file or directory"):
        resolve({}, {}, file.parent)
    file.unlink()
    file.mkdir()
    with pytest.raises(SettingsError, match=r"cannot read .*jobtable\.toml: Is a directory"):
        resolve({}, {}, file.parent)


@given(st.binary(max_size=200))
def test_no_file_is_anything_but_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = tmp_path_factory.mktemp("settings") / "jobtable.toml"
    file.write_bytes(content)
    with suppress(SettingsError):
        resolve({}, {}, file.parent)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_documented(name: str) -> None:
    default = Settings.model_fields[name].default
    if isinstance(default, tuple):
        default = ", ".join(default)
    shown = str(default).lower() if isinstance(default, bool) else default
    cell = f"`{shown}`" if shown not in (None, "") else ""
    row = f"| `{name}` | `{variable(name)}` | {cell} | {Settings.model_fields[name].description} |"
    assert row in DOCUMENTATION.read_text().splitlines()
