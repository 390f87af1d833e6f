"""The help of every command."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.main import get_command

from refract.cli.commands import COMMAND_TARGETS, app
from tests.cli.conftest import Run


@pytest.mark.parametrize("command", ["", *COMMAND_TARGETS])
def test_flags_have_no_type(run: Run, command: str) -> None:
    done = run(*command.split(), "--help")

    assert done.code == 0, done
    assert "--help" in done.out
    assert "<bool>" not in done.out


def test_every_command_that_lists_can_write_json() -> None:
    """Finding: no script could revoke a key, since the table of keys cut their ids."""
    lists = {
        name: command
        for name, command in _iter_commands(get_command(app))
        if (command.help or "").startswith("List ")
    }

    assert {"keys list", "admin list", "links list", "library list", "import list"} <= set(lists)
    assert [
        name
        for name, command in lists.items()
        if not any("--json" in option.opts for option in command.params)
    ] == []


def _iter_commands(command: Any, *names: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        yield " ".join(names), command
        return
    context = typer.Context(command)
    for name in command.list_commands(context):
        yield from _iter_commands(command.get_command(context, name), *names, name)
