"""`refract stats`."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

from refract.core.runtime import open_runtime
from refract.core.settings.model import Settings
from tests.cli.conftest import Run
from tests.clicks.counting import BOT, click, stored


def clicked(data: Path, link: int) -> None:
    async def come() -> None:
        async with open_runtime(Settings(data_dir=data)) as rt:
            now = datetime.now(UTC)
            await stored(
                rt,
                [click(link, now, host=f"203.0.{number}.1") for number in range(3)]
                + [click(link, now, agent=BOT)],
            )

    asyncio.run(come())


def test_stats_of_a_link(run: Run, data: Path) -> None:
    assert run("shorten", "https://example.com/", "--name", "plan").code == 0
    clicked(data, int(json.loads(run("links", "show", "plan", "--json").out)["id"]))

    shown = run("stats", "plan", "--tz", "Asia/Kolkata")
    assert (shown.code, shown.err) == (0, "")
    assert "3 clicks by 3 unique visitors; bots, excluded: 1 (previous period: 0)" in shown.out
    assert "a.example" in shown.out
    answer = json.loads(run("stats", "plan", "--by", "hour", "--json").out)
    assert answer["stats"]["totals"] == {"clicks": 3, "uniques": 3, "bots": 1}
    assert answer["stats"]["series"][-1]["clicks"] + answer["stats"]["series"][-2]["clicks"] == 3
    assert answer["breakdowns"]["referrers"]["items"][0]["value"] == "a.example"


def test_what_does_not_fit_is_said_in_a_sentence(run: Run) -> None:
    run("shorten", "https://example.com/", "--name", "plan")
    for words, said in (
        (["plan", "--tz", "Mars/Olympus"], "is unknown"),
        (["plan", "--from", "yesterday"], "Enter a date"),
        (["plan", "--from", "2026-05-02", "--to", "2026-05-01"], "must be earlier than"),
        (["nothing-here"], 'There\'s no link "nothing-here"'),
    ):
        ran = run("stats", *words)
        assert ran.code in (1, 2), words
        assert said in ran.err
        assert "Traceback" not in ran.err
