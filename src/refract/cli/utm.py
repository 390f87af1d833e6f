"""`refract utm`."""

from typing import Annotated, Any

import typer

from refract.cli.common import (
    get_acting_user,
    load_command_settings,
    run_on_data,
    validate_options,
)
from refract.cli.options import AsJson, AsUser, DataDir
from refract.cli.output import print_json, print_json_list
from refract.cli.tables import make_console, make_safe_text, make_table
from refract.core.runtime import Runtime
from refract.links.campaigns import service
from refract.links.campaigns.parameters import UTM_KEYS
from refract.links.campaigns.queries import find_template, list_templates
from refract.links.campaigns.schemas import UtmTemplateCreate, UtmTemplateOut, UtmTemplatePatch

app = typer.Typer(
    help="Create, list, edit and delete UTM templates. Set one in a link with --utm.",
    no_args_is_help=True,
)
TemplateArgument = Annotated[str, typer.Argument(help="Its name or id.", metavar="TEMPLATE")]
Source = Annotated[str | None, typer.Option("--source", help="utm_source.")]
Medium = Annotated[str | None, typer.Option("--medium", help="utm_medium.")]
Campaign = Annotated[str | None, typer.Option("--campaign", help="utm_campaign.")]
Term = Annotated[str | None, typer.Option("--term", help="utm_term.")]
Content = Annotated[str | None, typer.Option("--content", help="utm_content.")]


@app.command("list")
def list_all(user: AsUser = None, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List the UTM templates of a user and of their teams."""

    async def run(rt: Runtime) -> list[UtmTemplateOut]:
        owner = await get_acting_user(rt, user)
        async with rt.db.read() as session:
            return [owned.to_schema() for owned in await list_templates(session, owner.id)]

    found = run_on_data(load_command_settings(data_dir), run, makes_ids=False)
    if as_json:
        print_json_list(found)
    elif not found:
        typer.echo("No templates yet. Create one with: refract utm create NAME --source SOURCE")
    else:
        table = make_table("name", "team", "parameters")
        for template in found:
            values = [(key, getattr(template, key)) for key in UTM_KEYS]
            shown = " ".join(f"{key}={value}" for key, value in values if value)
            name = make_safe_text(template.name)
            table.add_row(name, template.team or "–", make_safe_text(shown, 500))
        make_console().print(table)


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="1 to 50 characters.")],
    *,
    source: Source = None,
    medium: Medium = None,
    campaign: Campaign = None,
    term: Term = None,
    content: Content = None,
    team: Annotated[
        str | None, typer.Option("--team", help="Handle of a team of yours that owns it.")
    ] = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Create a UTM template. It needs at least one parameter."""
    values = _collect_values(source, medium, campaign, term, content)
    new = validate_options(UtmTemplateCreate, name=name, team=team, **values)

    async def run(rt: Runtime) -> UtmTemplateOut:
        owner = await get_acting_user(rt, user)
        async with rt.db.write() as session:
            created = await service.create_template(session, owner, new, rt.clock.now())
            return created.to_schema()

    template = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json(template)
    else:
        typer.echo(f'Created {template.name}. Use it with: refract shorten URL --utm "{name}"')


@app.command("edit")
def edit(
    which: TemplateArgument,
    *,
    name: Annotated[str | None, typer.Option("--name", help="New name.")] = None,
    source: Source = None,
    medium: Medium = None,
    campaign: Campaign = None,
    term: Term = None,
    content: Content = None,
    user: AsUser = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Change a UTM template. "" removes a parameter; omitted ones are unchanged."""
    given = _collect_values(source, medium, campaign, term, content)
    changes = validate_options(UtmTemplatePatch, **given, **({"name": name} if name else {}))

    async def run(rt: Runtime) -> UtmTemplateOut:
        owner = await get_acting_user(rt, user)
        async with rt.db.write() as session:
            found = await find_template(session, owner.id, which)
            changed = await service.change_template(
                session, owner.id, found.template.id, changes, rt.clock.now()
            )
            return changed.to_schema()

    template = run_on_data(load_command_settings(data_dir), run)
    if as_json:
        print_json(template)
    else:
        typer.echo(f"Updated {template.name}. Links that were made with it stay as they are.")


@app.command("delete")
def delete(which: TemplateArgument, user: AsUser = None, data_dir: DataDir = None) -> None:
    """Delete a UTM template. Links that were made with it stay as they are."""

    async def run(rt: Runtime) -> str:
        owner = await get_acting_user(rt, user)
        async with rt.db.write() as session:
            found = await find_template(session, owner.id, which)
            await service.delete_template(session, owner.id, found.template.id, rt.clock.now())
            return found.template.name

    typer.echo(f"Deleted {run_on_data(load_command_settings(data_dir), run)}.")


def _collect_values(*values: str | None) -> dict[str, Any]:
    return {key: value for key, value in zip(UTM_KEYS, values, strict=True) if value is not None}
