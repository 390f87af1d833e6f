"""`refract links qr`."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from refract.cli.common import InvalidValue, load_command_settings, run_on_data
from refract.cli.links.context import LinkArgument, load_context
from refract.cli.options import AsUser, DataDir
from refract.core.runtime import Runtime
from refract.core.schemas import list_schema_errors
from refract.links import service
from refract.links.qr_styles import QrStyle
from refract.links.queries.qr_styles import load_qr_style
from refract.links.schemas import LinkPatch, QrStyleIn
from refract.names.service import namespace_of
from refract.redirect import qr as codes


class QrFormat(StrEnum):
    SVG = "svg"
    PNG = "png"


def qr(
    which: LinkArgument,
    output: Annotated[
        Path | None,
        typer.Option("--output", help="File to write. Default: standard output.", metavar="FILE"),
    ] = None,
    *,
    file_format: Annotated[QrFormat, typer.Option("--format", help="svg or png.")] = QrFormat.SVG,
    size: Annotated[
        int,
        typer.Option("--size", min=codes.MIN_SIZE, max=codes.MAX_SIZE, help="Pixels of a png."),
    ] = 512,
    color: Annotated[
        str | None, typer.Option("--color", help="Color of the code: #1d4ed8.")
    ] = None,
    background: Annotated[
        str | None, typer.Option("--background", help="Color of the background.")
    ] = None,
    margin: Annotated[
        int | None, typer.Option("--margin", help="Empty modules around the code.")
    ] = None,
    correction: Annotated[
        str | None, typer.Option("--correction", help="Error correction: L, M, Q or H.")
    ] = None,
    shape: Annotated[str | None, typer.Option("--shape", help="square or dots.")] = None,
    logo: Annotated[
        bool | None, typer.Option("--logo/--no-logo", help="Mark of Refract in the middle.")
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep the looks for this link.")] = False,
    user: AsUser = None,
    data_dir: DataDir = None,
) -> None:
    """Draw the QR code of a link, with its looks or with those of the options."""
    given = {
        "color": color,
        "background": background,
        "margin": margin,
        "correction": correction,
        "shape": shape,
        "logo": logo,
    }
    changes = {name: value for name, value in given.items() if value is not None}

    async def run(rt: Runtime) -> tuple[str, QrStyle]:
        context = await load_context(rt, user)
        async with rt.db.read() as session:
            link = await context.find_link(session, which)
            out = await context.to_schema(session, link)
            style = _change_style(await load_qr_style(session, link.id), changes)
        if save:
            async with rt.db.write() as session:
                await service.edit_link(
                    *(session, namespace_of(rt), context.caller, link.id),
                    LinkPatch(qr_style=style),
                )
        return out.short_url, style.to_style()

    url, style = run_on_data(load_command_settings(data_dir), run, makes_ids=save)
    image = _draw(url, style, file_format, size)
    if output is not None:
        output.write_bytes(image)
    else:
        sys.stdout.buffer.write(image)


def _change_style(style: QrStyle, changes: dict[str, Any]) -> QrStyleIn:
    try:
        return QrStyleIn.from_style(style, changes)
    except ValidationError as exc:
        first = list_schema_errors(exc)[0]
        raise InvalidValue(problem=f"--{first.field} is invalid: {first.message}") from exc


def _draw(url: str, style: QrStyle, file_format: QrFormat, size: int) -> bytes:
    if file_format is QrFormat.SVG:
        return codes.render_styled_svg(url, style)
    return codes.render_styled_png(url, size, style)
