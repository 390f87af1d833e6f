"""`refract save`, `refract library`, and imports and exports of the library."""

import asyncio
import json
import re
from pathlib import Path

from sqlalchemy import select

from refract.core.runtime import open_runtime
from refract.core.settings.model import Settings
from refract.imports.payloads import EndImport
from refract.jobs.models import Job
from refract.library import service
from refract.library.enrichment.types import EnrichmentProposal, SuggestedTag
from refract.library.queries.items import lock_item_row
from tests.cli.conftest import Run

SAMPLES = Path(__file__).parents[1] / "samples" / "imports" / "library"


def test_bookmarks_come_once_and_go_again(run: Run, tmp_path: Path) -> None:
    file = str(SAMPLES / "chrome.html")
    tried = run("import", "library", file, "--dry-run")
    assert tried.code == 1
    assert (
        tried.out == "Dry run, nothing was changed. 5 rows: 4 imported, 0 duplicate, 1 skipped.\n"
    )
    report = tmp_path / "report.csv"
    first = run("import", "library", file, "--report", str(report))
    assert first.out == "5 rows: 4 imported, 0 duplicate, 1 skipped.\n"
    assert "javascript" in report.read_text()
    assert run("import", "library", file).out == "5 rows: 0 imported, 4 duplicate, 1 skipped.\n"
    exported = json.loads(run("export", "library").out)
    assert [one["title"] for one in exported["items"]] == [
        "Bread & butter",
        "Soup",
        "From Pinboard",
        "Quoted otherwise",
    ]

    number = re.search(r"rollback (\d+)", first.err)
    assert number is not None
    assert "removed 4 items" in run("import", "rollback", number[1]).out
    left = json.loads(run("export", "library").out)
    assert (left["items"], left["tags"]) == ([], [])
    assert run("import", "rollback", "12").err == "Import not found.\n"
    assert run("import", "rollback", "x").code == 2
    assert "rolled back" in run("import", "list").out
    listed = json.loads(run("import", "list", "--json").out)
    assert (listed[-1]["id"], listed[-1]["status"]) == (number[1], "ROLLED_BACK")


def test_an_import_that_is_killed_does_not_run_for_ever(run: Run, data: Path) -> None:
    run("import", "library", str(SAMPLES / "chrome.html"))

    async def waiting() -> list[int]:
        async with open_runtime(Settings(data_dir=data)) as rt, rt.db.read() as session:
            ends = list(await session.scalars(select(Job).where(Job.kind == EndImport.kind)))
            return [int((job.run_at - rt.clock.now()).total_seconds() // 3600) for job in ends]

    assert asyncio.run(waiting()) == [23]


def test_an_empty_library_says_what_to_do(run: Run) -> None:
    assert "refract save" in run("library", "list").out
    assert run("library", "list", "--tag", "none").out == "No items found.\n"
    assert run("library", "search", "nothing").out == "No items found.\n"
    assert run("library", "review").out == "Nothing to review.\n"
    assert "refract import library FILE" in run("import", "list").out
    assert json.loads(run("library", "list", "--json").out) == {"items": [], "next_cursor": None}
    for words in (
        ("library", "show", "12"),
        ("library", "discard", "12"),
        ("library", "undo", "12"),
    ):
        assert (run(*words).err, run(*words).code) == ("Item not found.\n", 1)
    assert (run("library", "show", "x").err, run("library", "show", "x").code) == (
        '"x" is not the id of an item. List them with: refract library list\n', 2
    )  # fmt: skip


def test_what_is_saved_is_listed_found_and_put_away(run: Run) -> None:
    number = run("save", "A thought about steam.", "--no-enrich", "--tag", "Engines").out.strip()
    run("save", "https://www.example.com/soup?x=1", "--no-enrich")

    listed = run("library", "list").out.splitlines()
    assert [line.split()[0] for line in listed[1:]][1] == number
    assert "example.com " in listed[1]
    for words in (["stea", "THOUGHT"], ["#engines"], ["engines"], ["--", "thought", "-soup"]):
        assert number in run("library", "search", *words).out, words
    assert [
        one["id"] for one in json.loads(run("library", "search", "steam", "--json").out)["items"]
    ] == [number]
    assert number not in run("library", "list", "--type", "article").out
    more = run("library", "list", "--limit", "1")
    assert (len(more.out.splitlines()), more.err) == (
        2,
        "There are more. Use --limit 10, or search.\n",
    )
    shown = run("library", "show", number).out
    assert "A thought about steam." in shown
    assert "Engines" in shown

    assert run("library", "discard", number).out == "Discarded “A thought about steam.”.\n"
    assert number in run("library", "list", "--state", "discarded").out
    refused = run("library", "confirm", number)
    assert (refused.code, "is discarded" in refused.err) == (1, True)
    assert run("library", "undo", number).out == "Undone: “A thought about steam.”.\n"
    assert number in run("library", "list", "--tag", "engines").out


def test_items_are_marked_and_listed_by_their_states(run: Run) -> None:
    number = run(
        "save", "A thought.", "--no-enrich", "--unread", "--notes", "About steam"
    ).out.strip()
    away = run("save", "Another one.", "--no-enrich", "--archive", "--favorite").out.strip()
    assert "About steam" in run("library", "show", number).out
    assert "favorite, archived" in run("library", "show", away).out
    for options, expected in (
        ((), {number}),
        (("--unread",), {number}),
        (("--read",), set()),
        (("--archived", "true"), {away}),
        (("--archived", "any"), {number, away}),
        (("--favorite", "--archived", "any"), {away}),
    ):
        found = json.loads(run("library", "list", *options, "--json").out)["items"]
        assert {item["id"] for item in found} == expected, options
    assert number in run("library", "search", "steam").out
    assert away in run("library", "search", "is:archived").out

    marked = run("library", "mark", number, "--read", "--favorite", "--archive", "--notes", "")
    assert marked.out == "Changed “A thought.”.\n"
    shown = json.loads(run("library", "show", number, "--json").out)
    states = ("unread", "favorite", "archived", "notes")
    assert [shown[name] for name in states] == [False, True, True, None]
    assert run("library", "list", "--unread").out == "No items found.\n"
    run("library", "undo", number)
    shown = json.loads(run("library", "show", number, "--json").out)
    assert [shown[name] for name in states] == [True, False, False, "About steam"]
    assert "Choose what to change" in run("library", "mark", number).err


def test_what_waits_is_reviewed(run: Run, data: Path) -> None:
    number = run("save", "We need coal.\nAnd water.").out.strip()
    assert "fetching" in run("library", "review").out

    async def propose() -> None:
        async with open_runtime(Settings(data_dir=data)) as rt, rt.db.write() as session:
            item = await lock_item_row(session, int(number))
            assert item is not None
            tags = [SuggestedTag("Coal", 0.9, "in the text"), SuggestedTag("Mills", 0.4, "often")]
            await service.apply_proposal(
                session, rt, item, EnrichmentProposal("Coal and water", None, tags), final=True
            )

    asyncio.run(propose())
    waiting = run("library", "review").out
    assert "ready" in waiting
    assert "Coal, Mills" in waiting
    assert "Coal (90%, in the text)" in run("library", "show", number).out

    wrong = run("library", "confirm", number, "--accept", "Steam")
    assert (wrong.code, wrong.err) == (
        2,
        '"Steam" is not a suggested tag of this item. Suggested: Coal, Mills.\n',
    )
    filed = json.loads(
        run(
            "library",
            "confirm",
            number,
            "--accept",
            "coal",
            "--reject",
            "Mills",
            "--tag",
            "Mine",
            "--json",
        ).out
    )
    assert (filed["status"], filed["title"], [tag["name"] for tag in filed["tags"]]) == (
        "ARCHIVED",
        "Coal and water",
        ["Coal", "Mine"],
    )
    assert run("library", "review").out == "Nothing to review.\n"
    run("library", "undo", number)
    assert run("library", "confirm", number, "--accept-all").out == "Saved “Coal and water”.\n"
    assert "Coal, Mills" in run("library", "list").out
