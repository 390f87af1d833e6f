"""`refract demo`: a quarter of a small team's work, made offline by the program's own services."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from refract.cli.demo import items, lists
from refract.cli.demo.timeline import Timeline
from refract.core.clock import ManualClock
from refract.core.ids import get_creation_time
from tests.serving import refract, serving

DAYS = 90


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that the demo has filled; connections to other hosts would fail."""
    data = tmp_path_factory.mktemp("demo") / "data"
    model = {"REFRACT_MODEL_URL": "http://127.0.0.1:1/v1", "REFRACT_MODEL_NAME": "absent"}
    made = refract("demo", "--data-dir", str(data), **model)
    assert made.returncode == 0, made.stderr
    assert f"over {DAYS} days in {data}." in made.stdout
    return data


@pytest.fixture(scope="module")
def rows(data: Path) -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(data / "refract.db") as database:
        yield database
    database.close()


def _times(rows: sqlite3.Connection, query: str) -> list[datetime]:
    """Return when objects were created, which their ids tell."""
    return [get_creation_time(number) for (number,) in rows.execute(query)]


def _count(rows: sqlite3.Connection, query: str) -> Any:
    return rows.execute(query).fetchone()[0]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM links",
        "SELECT id FROM items WHERE confirmed_at IS NOT NULL",
        "SELECT id FROM lists",
    ],
)
def test_dates_are_spread_over_the_whole_time(rows: sqlite3.Connection, query: str) -> None:
    times, now = sorted(_times(rows, query)), datetime.now(UTC)
    assert times[-1] <= now
    assert times[0] < now - timedelta(days=DAYS * 0.8)
    assert times[-1] > now - timedelta(days=DAYS * 0.2)
    assert max(later - earlier for earlier, later in pairwise(times)) < (timedelta(days=DAYS / 2))


def test_links_are_made_by_day_and_on_weekdays(rows: sqlite3.Connection) -> None:
    times = _times(rows, "SELECT id FROM links")
    assert {moment.weekday() for moment in times} <= {0, 1, 2, 3, 4}
    assert all(7 <= moment.hour <= 18 for moment in times)


@pytest.mark.parametrize("hour", [3, 12, 22])
@pytest.mark.parametrize("day", range(1, 8))  # a week
def test_a_working_time_is_found_whenever_the_demo_is_made(day: int, hour: int) -> None:
    end = datetime(2026, 11, day, hour, tzinfo=UTC)
    timeline = Timeline(ManualClock(end - timedelta(days=DAYS)), end)

    for number in range(101):
        moment = timeline._find_working_time(timeline.start + timeline.length * number / 100)
        assert timeline.start <= moment <= end
        assert moment.weekday() < 5
        assert 8 <= moment.hour <= 17


def test_saved_articles_have_a_text_to_read(rows: sqlite3.Connection) -> None:
    articles = [sample for sample in items.SAMPLES if sample.article]
    lengths = [length for (length,) in rows.execute("SELECT length(text) FROM item_pages")]
    assert len(lengths) == len(articles)
    assert min(lengths) > 600
    assert _count(rows, "SELECT count(*) FROM items WHERE status = 'ENRICHING'") == 0


def test_what_waits_for_review_has_suggestions_with_reasons(rows: sqlite3.Connection) -> None:
    waiting = rows.execute(
        "SELECT i.id, count(s.id), min(length(s.reason)) FROM items i LEFT JOIN"
        " item_tag_suggestions s ON s.item_id = i.id WHERE i.status = 'READY_TO_CONFIRM'"
        " GROUP BY i.id"
    ).fetchall()
    assert len(waiting) == len([sample for sample in items.SAMPLES if not sample.tags])
    assert all(suggestions for _, suggestions, _ in waiting)
    assert all(reason for _, _, reason in waiting)


def test_published_lists_have_sections_views_and_clicks(rows: sqlite3.Connection) -> None:
    published = [sample for sample in lists.SAMPLES if sample.slug]
    assert _count(rows, "SELECT count(*) FROM lists WHERE status = 'published'") == (len(published))
    assert any(sample.sections for sample in published)
    views, fewest = rows.execute(
        "SELECT count(*), min(total_clicks) FROM list_totals t JOIN lists l ON l.id = t.target_id"
        " WHERE total_clicks > 0"
    ).fetchone()
    assert views == len(published)
    assert fewest > DAYS


def test_there_are_members_keys_rules_and_go_links(rows: sqlite3.Connection) -> None:
    assert _count(rows, "SELECT count(*) FROM users") == 5
    assert _count(rows, "SELECT count(*) FROM api_keys") == 2
    assert _count(rows, "SELECT count(*) FROM tag_rules") == 3
    assert _count(rows, "SELECT count(*) FROM links WHERE destination LIKE '%{%'") >= 5
    states = Counter(state for (state,) in rows.execute("SELECT status FROM links"))
    assert {"active", "disabled", "deleted"} <= set(states)


def test_every_article_is_used() -> None:
    folder = resources.files("refract.cli.demo").joinpath("articles")
    files = {file.name for file in folder.iterdir()}
    assert files == {sample.article for sample in items.SAMPLES if sample.article}


def test_a_directory_with_links_is_left_alone(data: Path) -> None:
    again = refract("demo", "--data-dir", str(data))
    assert again.returncode == 1
    assert "needs an empty data directory" in again.stderr


def test_the_first_start_prints_a_link_to_sign_in_with(data: Path) -> None:
    with serving(data) as first:
        assert first.signin_link.startswith(first.url)
    with serving(data) as second:
        offered = second.output.removeprefix(first.output)
        assert f"Sign in with a link from: refract signin-link --data-dir {data}" in offered


async def test_events_run_in_order_of_time_also_those_added_meanwhile() -> None:
    start = datetime(2026, 3, 2, tzinfo=UTC)
    clock = ManualClock(start)
    timeline = Timeline(clock, start + timedelta(days=10))
    ran: list[tuple[str, datetime]] = []

    def note(name: str, then: timedelta | None = None) -> Any:
        async def event() -> None:
            ran.append((name, clock.now()))
            if then is not None:
                timeline.add_at(clock.now() + then, note(f"{name} later"))

        return event

    timeline.add(0.9, note("last"))
    timeline.add(0.1, note("first", timedelta(days=1)))
    timeline.add_recent(timedelta(days=5), note("middle"))
    await timeline.run()

    assert [name for name, _ in ran] == ["first", "first later", "middle", "last"]
    assert ran[2][1] == start + timedelta(days=5)
    assert clock.now() == timeline.end
