"""`refract links`."""

import typer

from refract.cli.links import browse, lifecycle
from refract.cli.links import edit as links_edit

app = typer.Typer(
    help="View and change links. Identify a link by name, code, id or short URL.",
    no_args_is_help=True,
)
app.command("list")(browse.list_links)
app.command("show")(browse.show)
app.command("resolve")(browse.resolve)
app.command("history")(browse.history)
app.command("edit")(links_edit.edit)
app.command("revert")(links_edit.revert)
app.command("disable")(lifecycle.disable)
app.command("enable")(lifecycle.enable)
app.command("renew")(lifecycle.renew)
app.command("delete")(lifecycle.delete)
app.command("undo")(lifecycle.undo)
app.add_typer(links_edit.names_app, name="names")
app.add_typer(links_edit.owners_app, name="owners")
