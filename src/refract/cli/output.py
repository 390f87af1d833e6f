"""JSON output for scripts. Tables are apart: what draws them takes long to load."""

import json
from collections.abc import Iterable

import typer
from pydantic import BaseModel


def print_json(response: BaseModel) -> None:
    """Print an API response for scripts."""
    typer.echo(response.model_dump_json(indent=2))


def print_json_list(rows: Iterable[BaseModel]) -> None:
    """Print rows as an array for scripts."""
    typer.echo(json.dumps([row.model_dump(mode="json") for row in rows], indent=2))
