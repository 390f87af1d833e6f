"""`refract settings`."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import typer
from pydantic import SecretStr
from sqlalchemy import make_url

from refract.cli.options import AsJson, DataDir
from refract.core.settings.loader import load_settings
from refract.core.settings.model import Settings
from refract.core.settings.sources import PREFIX, find_setting_source, list_secret_fields
from refract.core.settings.validation import is_limit

_HIDDEN = "[hidden]"


def show_settings(
    as_json: AsJson = False,
    changed: bool = typer.Option(
        False, "--changed", help="Only settings that differ from their default."
    ),
    data_dir: DataDir = None,
) -> None:
    """Show the effective value and the source of every setting. Secrets are hidden."""
    settings = load_settings(data_dir=data_dir)
    file = os.environ.get("REFRACT_SETTINGS_FILE")
    written = tomllib.loads(Path(file).read_text()) if file else {}
    rows = [
        (
            f"{PREFIX}{field.upper()}",
            _format_value(settings, field),
            find_setting_source(field, {"data_dir": data_dir}, written),
        )
        for field in Settings.model_fields
    ]
    rows = [row for row in rows if not changed or row[2] != "default"]
    if as_json:
        typer.echo(
            json.dumps(
                [dict(zip(("variable", "value", "source"), row, strict=True)) for row in rows],
                indent=1,
            )
        )
        return
    wide = max((len(row[0]) for row in rows), default=0)
    for variable, value, source in rows:
        typer.echo(f"{variable:{wide}} = {'' if value is None else value}  # {source}")


def _format_value(settings: Settings, field: str) -> Any:
    value = getattr(settings, field)
    if value is None:
        return "unlimited" if is_limit(Settings.model_fields[field]) else None
    if isinstance(value, SecretStr):
        return _HIDDEN
    if field in list_secret_fields(Settings):
        return make_url(value).render_as_string(hide_password=True)
    if field == "issuers":
        return ", ".join(value) or None
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value.absolute()) if isinstance(value, Path) else value
