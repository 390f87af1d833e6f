"""`refract links`."""

from typing import Final

import typer

from refract.cli.groups import make_lazy_group

COMMAND_TARGETS: Final = {
    "list": "links.browse:list_links",
    "show": "links.browse:show",
    "resolve": "links.browse:resolve",
    "history": "links.browse:history",
    "edit": "links.edit:edit",
    "revert": "links.edit:revert",
    "disable": "links.lifecycle:disable",
    "enable": "links.lifecycle:enable",
    "renew": "links.lifecycle:renew",
    "delete": "links.lifecycle:delete",
    "undo": "links.lifecycle:undo",
    "names": "links.edit:names_app",
    "owners": "links.edit:owners_app",
    "teams": "links.teams:app",
    "rules": "links.rules:app",
    "qr": "links.qr:qr",
}

app = typer.Typer(
    cls=make_lazy_group(COMMAND_TARGETS),
    help="View and change links. Identify a link by name, code, id or short URL.",
    no_args_is_help=True,
)


@app.callback()
def links() -> None:
    pass
