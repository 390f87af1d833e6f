"""`refract library`."""

import typer

from refract.cli.library import browse
from refract.cli.library import review as library_review

app = typer.Typer(
    help="Search the library and review new items. Use `refract save` to add one.",
    no_args_is_help=True,
)
app.command("list")(browse.list_library)
app.command("search")(browse.search)
app.command("show")(browse.show)
app.command("review")(browse.review)
app.command("confirm")(library_review.confirm)
app.command("mark")(library_review.mark)
app.command("discard")(library_review.discard)
app.command("retry")(library_review.retry)
app.command("undo")(library_review.undo)
