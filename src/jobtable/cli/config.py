"""`jobtable config`: the settings in force, and the source of each."""

from __future__ import annotations

from jobtable.cli.framework import group_of_one
from jobtable.cli.options import AsJson, ObjectsUrl, StoreUrl, resolved
from jobtable.cli.output import print_either, print_table
from jobtable.connection import default_objects_url
from jobtable.settings import without_secret

app = group_of_one()


@app.command(example="JOBTABLE_SLOTS=4 jobtable config show")
def show(store: StoreUrl = None, objects: ObjectsUrl = None, as_json: AsJson = False) -> None:
    """Show every setting with its value and source.

    Options override environment variables, which override jobtable.toml, which overrides the defaults.
    """
    found = resolved(store=store, objects=objects)
    values = found.settings.model_dump()
    values["token"] = values["token"] and "***"
    sources = dict(found.sources)
    if found.settings.objects is None and found.settings.store.startswith(("file:", "memory:")):
        values["objects"], sources["objects"] = default_objects_url(found.settings.store), "beside the store"
    shown = {name: without_secret(value) if isinstance(value, str) else value for name, value in values.items()}
    rows = [{"setting": name, "value": value, "from": sources[name]} for name, value in shown.items()]
    print_either(rows, lambda: print_table(rows), as_json=as_json)
