"""Options that many commands share. Importing this module is cheap."""

from pathlib import Path
from typing import Annotated

import typer

AsUser = Annotated[
    str | None,
    typer.Option("--user", help="Act as this user. Default: the owner.", metavar="EMAIL"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Data directory. [env: REFRACT_DATA_DIR]",
        show_default="data",
        readable=False,  # checked later, with a message that says what to do
    ),
]
