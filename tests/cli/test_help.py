"""The help of every command."""

from collections.abc import Iterator

import click
import pytest
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
    without = [
        name
        for name, command in _iter_commands(get_command(app))
        if (command.help or "").startswith("List ")
        and not any("--json" in option.opts for option in command.params)
    ]

    assert without == []


def _iter_commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(names), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _iter_commands(inner, *names, name)
