"""`refract links rules`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from refract.cli.common import InvalidValue, load_command_settings, run_on_data
from refract.cli.links.context import LinkArgument, load_context
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import print_json
from refract.core.errors import FieldError, RefractError
from refract.core.runtime import Runtime
from refract.core.schemas import list_schema_errors
from refract.identity.access import AccessRight
from refract.links import service
from refract.links.models import Link
from refract.links.queries import view_link
from refract.links.rules.checks import check_rules
from refract.links.rules.document import parse_rules
from refract.links.rules.schemas import LinkRulesIn, LinkRulesOut, build_rule_out
from refract.names.service import namespace_of

app = typer.Typer(help="Rules that send some visitors of a link elsewhere.", no_args_is_help=True)


@app.command("show")
def show_rules(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Show the rules of a link, in the order in which they are tried."""

    async def run(rt: Runtime) -> LinkRulesOut:
        context = await load_context(rt, user)
        async with rt.db.read() as session:
            link = await context.find_link(session, which)
            await view_link(session, context.caller, link.id, AccessRight.EDIT)
            return _build_rules_out(link)

    _print_rules(run_on_data(load_command_settings(data_dir), run), as_json=as_json)


@app.command("set")
def set_rules(
    which: LinkArgument,
    file: Annotated[
        str, typer.Argument(help="JSON as `show --json` prints it, or - to read it from stdin.")
    ],
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Replace all rules of a link."""
    given = _read_rules(file)
    settings = load_command_settings(data_dir)
    saved = run_on_data(settings, lambda rt: _replace_rules(rt, which, given, user))
    _print_rules(saved, as_json=as_json)


@app.command("clear")
def clear_rules(
    which: LinkArgument, user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None
) -> None:
    """Remove all rules of a link. Earlier ones come back with `refract links revert`."""
    settings, given = load_command_settings(data_dir), LinkRulesIn(rules=[])
    saved = run_on_data(settings, lambda rt: _replace_rules(rt, which, given, user))
    _print_rules(saved, as_json=as_json)


async def _replace_rules(
    rt: Runtime, which: str, given: LinkRulesIn, user: str | None
) -> LinkRulesOut:
    context = await load_context(rt, user)
    async with rt.db.read() as session:
        link = await context.find_link(session, which)
    try:
        checked = await check_rules(rt, given.rules)
    except RefractError as exc:
        if not exc.errors:
            raise
        raise _build_error(exc.errors) from exc
    async with rt.db.write() as write_session:
        locked = await service.replace_rules(
            write_session, namespace_of(rt), context.caller, link.id, checked
        )
        return _build_rules_out(locked.link)


def _build_rules_out(link: Link) -> LinkRulesOut:
    rules = [build_rule_out(rule) for rule in parse_rules(link.rules)]
    return LinkRulesOut(link_id=link.id, version=link.version, rules=rules)


def _read_rules(file: str) -> LinkRulesIn:
    """Return the rules in a file, or raise what is wrong with which of them."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
        document = json.loads(text)
    except (OSError, ValueError, RecursionError) as exc:
        raise InvalidValue(problem=f"{file} isn't a readable JSON file.") from exc
    rules = document.get("rules") if isinstance(document, dict) else document
    try:
        return LinkRulesIn.model_validate({"rules": rules})
    except ValidationError as exc:
        raise _build_error(list_schema_errors(exc)) from exc


def _build_error(errors: Sequence[FieldError]) -> InvalidValue:
    problem = " ".join(f"{error.field}: {error.message}" for error in errors)
    return InvalidValue(problem=problem)


def _print_rules(found: LinkRulesOut, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    if not found.rules:
        typer.echo("No rules: everyone gets the destination of the link.")
    for rule in found.rules:
        typer.echo(f"{rule.number}. {rule.destination}")
        for name, value in rule.conditions.to_json().items():
            typer.echo(f"   {name}: {_format_value(value)}")


def _format_value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
