"""The steps of the check of linkding, by aiolinkding and linkding-cli."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import steps
from aiolinkding import async_get_client

url, token = sys.argv[1:]
PAGE = "https://example.com/page"


async def attempt(name: str, call: Coroutine[Any, Any, Any]) -> Any:
    try:
        steps.found[name] = await call
    except Exception as exc:  # noqa: BLE001 - the test judges it
        steps.found[name] = {"failed": type(exc).__name__, "message": str(exc)}
    return steps.found[name]


async def use_library() -> None:
    client = await async_get_client(url, token)
    bookmarks, tags = client.bookmarks, client.tags
    made = await attempt(
        "create",
        bookmarks.async_create(
            PAGE, title="Page", description="About", notes="Mine", tag_names=["b", "a"]
        ),
    )
    number = made["id"]
    await attempt(
        "again", bookmarks.async_create(PAGE.upper().replace("HTTPS", "https"), unread=True)
    )
    await attempt("same", bookmarks.async_create(f"{PAGE}#", title="Other", unread=True))
    await attempt("list", bookmarks.async_get_all(limit=1))
    await attempt("search", bookmarks.async_get_all(query="#a and (about or nothing) not zebra"))
    await attempt("missed", bookmarks.async_get_all(query="#nothing"))
    await attempt("one", bookmarks.async_get_single(number))
    await attempt("update", bookmarks.async_update(number, title="Updated", tag_names=["c"]))
    await attempt("archive", bookmarks.async_archive(number))
    await attempt("archived", bookmarks.async_get_archived())
    await attempt("rest", bookmarks.async_get_all())
    await attempt("unarchive", bookmarks.async_unarchive(number))
    await attempt("tags", tags.async_get_all())
    tag = steps.found["tags"]["results"][0]["id"]
    await attempt("tag", tags.async_get_single(tag))
    await attempt("wrong_tag", tags.async_create("example"))
    await attempt("profile", client.user.async_get_profile())
    await attempt("absent", bookmarks.async_get_single(2_000_000_000))
    await attempt("delete", bookmarks.async_delete(number))
    await attempt("deleted", bookmarks.async_get_single(number))
    other = await async_get_client(url, "nonsense")
    await attempt("bad_token", other.bookmarks.async_get_all())


def run_command(*arguments: str) -> Any:
    program = Path(sys.executable).with_name("linkding")
    command = [str(program), "--url", url, "--token", token, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout.strip()


def use_command() -> None:
    made = steps.step(
        "cli_create",
        lambda: run_command(
            "bookmarks", "create", "https://example.com/cli", "--title", "By command"
        ),
    )
    number = str(made.get("id"))
    steps.step("cli_get", lambda: run_command("bookmarks", "get", number))
    steps.step("cli_all", lambda: run_command("bookmarks", "all", "--query", "command"))
    steps.step("cli_archive", lambda: run_command("bookmarks", "archive", number))
    steps.step("cli_tags", lambda: run_command("tags", "all"))
    steps.step("cli_profile", lambda: run_command("user", "profile"))
    steps.step("cli_delete", lambda: run_command("bookmarks", "delete", number))


asyncio.run(use_library())
use_command()
steps.finish()
