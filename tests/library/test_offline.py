"""The offline tier, end to end: capture, fetch, extract, suggest."""

from refract.core.runtime import Runtime
from refract.jobs.worker import JobWorker
from tests.client import on_sqlite
from tests.library.conftest import Look, Save
from tests.library.http import Site, page

ENGINES = page(
    "How steam engines work",
    "A steam engine turns the heat of burning coal into motion, and that motion drove the mills of"
    " Manchester for a century.\nWater is boiled under pressure, and the steam pushes a piston that"
    " turns a wheel. James Watt added a separate condenser, so that the cylinder could stay hot"
    " while the steam was cooled elsewhere.\nThe condenser saved three quarters of the coal, which"
    " is why the engines of Watt replaced those of Newcomen everywhere.\nRailways came later: a"
    " locomotive is a steam engine that carries its own boiler.",
    head=(
        '<meta name="author" content="Ada"><meta property="article:tag" content="Steam"><meta'
        ' property="og:image" content="/engine.png"><link rel="canonical" href="/engines"><meta'
        ' property="article:published_time" content="2024-03-01T10:00:00Z">'
    ),
)


@on_sqlite
async def test_an_article_is_fetched_read_and_described(
    rt: Runtime, work: JobWorker, save: Save, look: Look, site: Site
) -> None:
    site.pages["/engines?utm_source=x"] = ENGINES
    item = await save(site.url("/engines?utm_source=x"))
    assert (item.status, item.type, item.enrichment, item.title) == (
        "ENRICHING",
        "ARTICLE",
        None,
        None,
    )

    await work.run_due_jobs()

    item = await look(item)
    assert (item.status, item.enrichment, item.title) == (
        "READY_TO_CONFIRM",
        "SYSTEM",
        "How steam engines work",
    )
    assert item.summary
    assert "condenser" in item.summary
    assert "Steam" in [one.name for one in item.suggestions]
    assert all(
        one.reason and 0 < one.confidence <= 1 and one.source == "SYSTEM"
        for one in item.suggestions
    )
