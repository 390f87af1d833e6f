"""`refract explain`."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from refract.cli.common import load_command_settings, parse_start, run_on_data, validate_options
from refract.cli.links.context import load_context
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import print_json
from refract.core.errors import Conflict
from refract.core.runtime import Runtime
from refract.core.schemas import OutputSchema
from refract.domains.hosts import split_address
from refract.identity.access import AccessRight
from refract.identity.models import User
from refract.links.queries import view_link
from refract.redirect.lookup import DatabaseLookup
from refract.redirect.resolver import (
    CardOutcome,
    LimitedOutcome,
    RedirectOutcome,
    WarningOutcome,
    parse_path,
    resolve,
)
from refract.redirect.rules import choose_rule
from refract.redirect.schemas import PretendedVisitor, RuleResult
from refract.redirect.simulation import build_visitor, explain_rules, get_number
from refract.redirect.visitors import VisitorFacts


class Explanation(OutputSchema):
    """Where a visitor is sent, and what each rule says about them."""

    location: str | None
    """None for a crawler of a chat, which gets the preview card."""
    rule: int | None
    rules: list[RuleResult]


class NoRedirect(Conflict):
    """{path} doesn't redirect now: the link isn't active, or the path doesn't fit it."""


@dataclass(frozen=True, slots=True)
class CommandUser:
    """The acting user of a command, as the resolver knows users."""

    user: User
    is_admin: bool


def explain(
    path: Annotated[
        str, typer.Argument(help="A path such as /jira/PROJ-1?view=all, or a short URL.")
    ],
    *,
    agent: Annotated[str, typer.Option("--agent", help="The User-Agent header.")] = "",
    languages: Annotated[
        str, typer.Option("--languages", help="The Accept-Language header.", metavar="de,en;q=0.8")
    ] = "",
    referrer: Annotated[str, typer.Option("--referrer", help="The Referer header.")] = "",
    country: Annotated[
        str | None, typer.Option("--country", help="Two letters.", metavar="DE")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", help="Time of the visit: 2d, 2030-01-31, a time.")
    ] = None,
    seed: Annotated[str, typer.Option("--seed", help="Any text: another visitor in shares.")] = "",
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Explain where a visitor is sent, rule by rule, without counting a click."""
    given = {"agent": agent, "languages": languages, "referrer": referrer, "seed": seed}

    async def run(rt: Runtime) -> Explanation:
        when = None if at is None else parse_start(at, rt.clock.now())
        pretended = validate_options(PretendedVisitor, **given, country=country, at=when)
        return await _explain_path(rt, path, pretended, user)

    found = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json(found)
        return
    for rule in found.rules:
        mark = "blocked" if rule.blocked else "matches" if rule.matched else "no match"
        typer.echo(f"{rule.number}. {rule.destination}: {mark}")
        for part in rule.conditions:
            sign = "+" if part.matched else "-"
            typer.echo(f"   {sign} {part.condition}: the visitor has {part.visitor or 'nothing'}")
    if found.location is None:
        typer.echo("The visitor is a crawler of a chat, and gets the preview card.")
        return
    typer.echo(f"{f'Rule {found.rule}' if found.rule else 'The link'} decides: {found.location}")


async def _explain_path(
    rt: Runtime, typed: str, pretended: PretendedVisitor, email: str | None
) -> Explanation:
    context = await load_context(rt, email)
    async with rt.db.read() as session:
        link = await context.find_link(session, typed)
        await view_link(session, context.caller, link.id, AccessRight.EDIT)
    bare, _, query = typed.partition("#")[0].partition("?")
    host, path = split_address(rt.settings.public_url, bare)
    request = parse_path(f"/{path.lstrip('/')}".encode(), query.encode(), host or "")
    facts, now = rt.singleton(VisitorFacts), pretended.at or rt.clock.now()
    visitor = build_visitor(pretended, query, now)

    async def get_user() -> Any:
        return CommandUser(context.user, context.caller.is_admin)

    outcome = await resolve(
        DatabaseLookup(rt),
        request,
        get_user,
        lambda: now,
        choose=lambda found: choose_rule(found, facts, visitor),
        is_crawler=lambda: facts.crawlers[visitor.agent],
    )
    if not isinstance(outcome, RedirectOutcome | WarningOutcome | CardOutcome | LimitedOutcome):
        raise NoRedirect(path=typed)
    rules = explain_rules(outcome.found, facts, visitor)
    if isinstance(outcome, CardOutcome):
        return Explanation(location=None, rule=None, rules=rules)
    return Explanation(location=outcome.href, rule=get_number(outcome.found), rules=rules)
