"""The generated reference pages: settings, errors, commands and the API, each from the code that it
describes.

`make docs` writes them; `tests/docs` fails when a page has fallen behind.
"""

import ast
import importlib
import inspect
import pkgutil
import sys
import types
import typing
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import typer
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from typer.core import TyperGroup

import refract
from refract.app import build_sample_api
from refract.cli.commands import app as commands
from refract.core.errors import KINDS, ConfigurationError, RefractError, VersionMismatch
from refract.core.settings.issuers import Issuer
from refract.core.settings.model import Settings
from refract.core.settings.validation import AnonymousLimitSetting, LimitSetting, NetworkValue
from refract.identity import dependencies
from refract.web import openapi
from refract.web.api_docs import ApiOperation, build_sections, strip_placeholders
from refract.web.problems import STATUS_TITLES
from tools.figures import figures_page, with_measured

REFERENCE = Path(__file__).parents[1] / "docs/reference"
RELIABILITY = REFERENCE.parent / "reliability.md"
EXAMPLE_URL = "https://go.example.com"
NOTE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->\n"
_WORDS: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    Path: "path",
    SecretStr: "secret text",
    NetworkValue: "network",
    dict[str, Issuer]: "see below",
}
_LIMITS = {
    LimitSetting: "whole number from 1, or `unlimited`",
    AnonymousLimitSetting: "whole number from 0, or `unlimited`",
}

EVERYWHERE = {error.code for error in (*openapi.COMMON, *dependencies.GUARD_ERRORS)}
"""Codes that nearly every call may answer; the page names only what is particular to one."""


def pages() -> dict[str, str]:
    """Each page's name and content."""
    document = build_sample_api(EXAMPLE_URL).openapi()
    made = {
        "settings.md": settings_page(),
        "errors.md": errors_page(),
        "commands.md": commands_page(),
    }
    made |= {"api.md": api_page(document), "figures.md": figures_page()}
    return {name: f"{NOTE}{text}".rstrip() + "\n" for name, text in made.items()}


def _table(*head: str) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# -- settings


def settings_page() -> str:
    text = (
        "Every setting is an environment variable, or a line in the TOML file that"
        " `REFRACT_SETTINGS_FILE` names. The options of `refract serve` (host, port, data"
        " directory, workers, role) take precedence. An invalid value stops the start with a"
        " message that says what is allowed."
    )
    table = _table("variable", "value", "default", "meaning")
    return "\n".join(
        ["# Settings", "", text, "", *table, *_rows("REFRACT_", Settings), "", *_issuers(table)]
    )


def _issuers(table: list[str]) -> list[str]:
    """The members of one identity provider."""
    text = (
        "Each provider has a name of its own, here `WORK`: up to 31 letters, digits, `-` and `_`."
        " It is part of the redirect URI, `/auth/oidc/work/callback`."
        " See [sign-in](../how-to/sign-in.md)."
    )
    return [
        "## Identity providers",
        "",
        text,
        "",
        *table,
        *_rows("REFRACT_ISSUERS__WORK__", Issuer),
    ]


def _rows(prefix: str, model: type[BaseModel]) -> list[str]:
    meanings = docstrings(model)
    return [
        f"| `{prefix}{name.upper()}` | {_cell(type_in_words(field))} | {_default(field)} |"
        f" {_cell(meanings.get(name, ''))} |"
        for name, field in model.model_fields.items()
    ]


def docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The text under each attribute.

    The program itself has no use for it, and reading its own source would take its start a while.
    """
    body = cast("ast.ClassDef", ast.parse(inspect.getsource(model)).body[0]).body
    found = {}
    for attribute, below in pairwise(body):
        match attribute, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(text))
            ):
                found[name] = inspect.cleandoc(text)
    return found


def type_in_words(field: FieldInfo) -> str:
    """What may be written into the variable."""
    for limit, words in _LIMITS.items():
        if typing.get_args(limit)[-1] in field.metadata:
            return words
    return _words_for(field.annotation) + _bounds(field)


def _words_for(annotation: Any) -> str:
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if origin is typing.Literal:
        return " or ".join(f"`{part}`" for part in parts)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_words_for(part) for part in parts if part is not type(None))
    if origin is tuple:
        return f"{_words_for(parts[0])}s, separated by commas"
    message = f"tools/docs.py has no word for the type {annotation} of a setting: add it to _WORDS"
    raise LookupError(message)


def _bounds(field: FieldInfo) -> str:
    facts = {
        name: getattr(one, name)
        for one in field.metadata
        for name in ("ge", "gt", "le", "lt")
        if hasattr(one, name)
    }
    low = (
        f"from {facts['ge']:,}"
        if "ge" in facts
        else f"above {facts['gt']:,}"
        if "gt" in facts
        else ""
    )
    high = (
        f"to {facts['le']:,}"
        if "le" in facts
        else f"below {facts['lt']:,}"
        if "lt" in facts
        else ""
    )
    return f", {' '.join(filter(None, [low, high]))}" if low or high else ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "(needed)"
    if field.default in (None, ()) or field.default_factory is not None:
        return ""
    return (
        f"`{','.join(map(str, field.default))}`"
        if isinstance(field.default, tuple)
        else f"`{field.default}`"
    )


# -- errors


def error_classes() -> list[type[RefractError]]:
    """Every error that the program can give, from whatever module, but for those that only say what
    kind another is of.
    """
    for module in pkgutil.walk_packages(refract.__path__, "refract."):
        if not module.name.startswith(("refract.__main__", "refract.migrations")):
            importlib.import_module(module.name)
    silent = {kind for kind in KINDS if kind is not VersionMismatch} | {ConfigurationError}
    return sorted(
        (one for one in _below(RefractError) if one not in silent),
        key=lambda one: (one.status, one.code),
    )


def _below(kind: type[RefractError]) -> Iterator[type[RefractError]]:
    for one in kind.__subclasses__():
        if one.__module__.startswith("refract."):
            yield one
            yield from _below(one)


def errors_page() -> str:
    rows = [
        f"| {one.status} {STATUS_TITLES[one.status]} | `{one.code}` |"
        f" {_cell(strip_placeholders(one.template))} |"
        for one in error_classes()
        if not one.__module__.startswith("refract.compat.")  # dialects send no codes of ours
    ]
    text = (
        "The API returns errors as `application/problem+json` (RFC 9457). Programs should use"
        " `code`, which is stable; messages may change. `…` stands for details of the request. On"
        " the command line the message goes to standard error; the exit code is 2 for invalid input"
        " (400, 422, a setting) and 1 otherwise."
    )
    return "\n".join(["# Errors", "", text, "", *_table("status", "code", "message"), *rows])


# -- commands


def commands_page() -> str:
    root = typer.main.get_command(commands)
    parts = [
        part for path, command in every_command(root, "refract") for part in _command(path, command)
    ]
    return "\n".join(["# Commands", "", f"{root.help}", "", *parts])


def every_command(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Commands that do something, with the words that call them."""
    if not isinstance(command, TyperGroup):
        yield path, command
        return
    for name, inner in sorted(command.commands.items()):
        yield from every_command(inner, f"{path} {name}")


def _command(path: str, command: Any) -> Iterator[str]:
    options = [
        one for one in command.params if one.param_type_name == "option" and one.name != "help"
    ]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    usage = [
        path,
        *(_get_metavar(argument) for argument in arguments),
        *(["[OPTIONS]"] if options else []),
    ]
    yield from (
        f"## {path}",
        "",
        f"`{' '.join(usage)}`",
        "",
        " ".join((command.help or "").split()),
        "",
    )
    rows = [(_get_metavar(argument), argument.help) for argument in arguments] + [
        (", ".join(one.opts), _option(one)) for one in options
    ]
    if rows:
        yield from (
            *_table("option", "meaning"),
            *(f"| `{words}` | {_cell(meaning or '')} |" for words, meaning in rows),
            "",
        )


def _get_metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _option(one: Any) -> str:
    default = f" Default: `{one.show_default}`." if isinstance(one.show_default, str) else ""
    return f"{one.help or ''}{' Required.' if one.required else ''}{default}"


# -- the API


def api_page(document: dict[str, Any]) -> str:
    text = (
        f"{document['info']['description'].strip()}\n\nA running server shows this page with"
        " examples at `/api/docs`. Besides the errors below, any call may return"
        f" {', '.join(f'`{code}`' for code in sorted(EVERYWHERE))}: see [errors](errors.md)."
    )
    parts: list[str] = []
    for chapter in build_sections(document):
        table = _table("call", "what it does", "scope", "specific errors")
        parts += [
            f"## {chapter.name.capitalize()}",
            "",
            chapter.description,
            "",
            *table,
            *map(_row, chapter.operations),
            "",
        ]
    return "\n".join(["# API", "", text, "", *parts])


def _row(one: ApiOperation) -> str:
    codes = ", ".join(
        f"`{refusal.code}`" for refusal in one.refusals if refusal.code not in EVERYWHERE
    )
    scope = f"{one.scope or ''}{' (or none)' if one.scope and one.is_open else ''}"
    return f"| `{one.method} {one.path}` | {_cell(one.summary)} | {scope} | {codes} |"


def main() -> int:
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
        print(f"docs/reference/{name}")
    RELIABILITY.write_text(with_measured(RELIABILITY.read_text(encoding="utf-8")), encoding="utf-8")
    print("docs/reliability.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
