"""`refract library`."""

import typer

from refract.cli.library import decide, look

app = typer.Typer(
    help="The library: find what you keep, and decide about what waits. `refract save` puts something in.", no_args_is_help=True
)
app.command("list")(look.list_items)
app.command("search")(look.search)
app.command("show")(look.show)
app.command("review")(look.review)
app.command("confirm")(decide.confirm)
app.command("discard")(decide.discard)
app.command("retry")(decide.retry)
app.command("undo")(decide.undo)
