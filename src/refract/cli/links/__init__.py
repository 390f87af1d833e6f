"""`refract links`."""

import typer

from refract.cli.links import change, life, look, names, owners

app = typer.Typer(
    help="Links: look at them and change them. A link is meant by its name, its code, its id or its short URL.", no_args_is_help=True
)
app.command("list")(look.list_links)
app.command("show")(look.show)
app.command("resolve")(look.resolve)
app.command("history")(look.history)
app.command("edit")(change.edit)
app.command("revert")(change.revert)
app.command("disable")(life.disable)
app.command("enable")(life.enable)
app.command("renew")(life.renew)
app.command("delete")(life.delete)
app.command("undo")(life.undo)
app.add_typer(names.app, name="names")
app.add_typer(owners.app, name="owners")
