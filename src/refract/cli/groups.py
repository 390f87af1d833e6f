"""Groups of commands that import a command when it is looked up."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup


def _hide_types(parameters: Iterable[Any]) -> None:
    """Remove `<bool>` from the help of flags, which take no value."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""


def hide_flag_types(command: Any) -> Any:
    """Hide the types of flags of a command and of those in its group; return the command."""
    _hide_types(command.get_params(typer.Context(command)))
    inner = getattr(command, "commands", {})
    if not isinstance(inner, LazyCommands):  # whose commands hide theirs when they are loaded
        for found in inner.values():
            hide_flag_types(found)
    return command


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each imported when it is looked up.

    A target is a module of `refract.cli`, and the function or `app` (a group of commands) in it.
    """

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._targets = targets

    def __getitem__(self, name: str) -> Any:
        module, attribute = self._targets[name].split(":")
        found = getattr(import_module(f"refract.cli.{module}"), attribute)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            alone.command(name)(found)
            return hide_flag_types(typer.main.get_command(alone))
        command = typer.main.get_group(found)
        command.name = name
        return hide_flag_types(command)

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def __len__(self) -> int:
        return len(self._targets)


class LazyGroup(TyperGroup):
    """A group that knows the names of its commands, and imports those that are looked up."""

    targets: Mapping[str, str] = {}

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = LazyCommands(self.targets)  # type: ignore[assignment]  # read-only

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, of which Typer adds some after the group was created."""
        parameters = super().get_params(ctx)
        _hide_types(parameters)
        return parameters


def make_lazy_group(commands: Mapping[str, str]) -> type[LazyGroup]:
    """Return the class of a group with these commands, which Typer creates."""
    return type("LazyGroup", (LazyGroup,), {"targets": commands})
