"""Options that many commands have. Nothing here takes long to load."""

from pathlib import Path
from typing import Annotated

import typer

AsUser = Annotated[
    str | None,
    typer.Option("--user", help="Do it as this person. Left out: the owner.", metavar="EMAIL"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="The directory with the data. [env: REFRACT_DATA_DIR]",
        show_default="data",
        readable=False,  # we look ourselves, and say what to do
    ),
]
