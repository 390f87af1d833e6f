"""Admin pages of health and jobs in the language of the page."""

import pytest
from httpx import AsyncClient

from refract.core.errors import StoreUnavailable
from refract.core.net.errors import TimedOut
from refract.core.phrases import CountPhrase, Phrase
from refract.core.redis import RedisUnavailable
from refract.core.runtime import Runtime
from refract.identity.models import User
from refract.jobs.handlers import describe_error
from refract.jobs.leases import LEASE_EXPIRED, LEASE_EXPIRED_MESSAGE
from refract.jobs.models import Job, JobStatus
from refract.links.errors import LinkNotFound
from refract.server.node import ServerNode
from refract.web.health import DependencyHealth, ReadinessDetail
from refract.web.i18n import LANGUAGES, translate, translate_stored_error, use_locale
from tests import make
from tests.client import by_cookie, on_sqlite
from tests.people import root

__all__ = ["root"]


@pytest.mark.parametrize(
    "error", [StoreUnavailable(), LinkNotFound(), RedisUnavailable(reason="TimeoutError")]
)
def test_the_stored_message_of_an_error_is_translated(error: Exception) -> None:
    code, message = describe_error(error)
    with use_locale(LANGUAGES["de"]):
        assert translate_stored_error(code, message) != message


def test_messages_of_retries_and_leases_are_translated() -> None:
    with use_locale(LANGUAGES["de"]):
        assert translate_stored_error(LEASE_EXPIRED, str(LEASE_EXPIRED_MESSAGE)) == (
            "Der Worker wurde beendet, bevor der Auftrag fertig war."
        )
        assert translate_stored_error("TIMED_OUT", TimedOut().message).startswith("Der Server")
        assert translate_stored_error("KEY_ERROR", "'x' {y}") == "'x' {y}"
        assert translate_stored_error("", "") == ""


def test_problems_of_a_node_stay_translatable() -> None:
    lost = CountPhrase(
        "{n} click was lost because it couldn't be written.",
        "{n} clicks were lost because they couldn't be written.",
        1,
    )
    detail = Phrase("It isn't responding.")
    dependency = DependencyHealth(status="down", latency_ms=None, detail=detail)
    state = ReadinessDetail(
        status="degraded", version="1", dependencies={"redis": dependency}, problems=[lost]
    )

    assert state.model_dump(mode="json")["problems"] == [
        "1 click was lost because it couldn't be written."
    ]
    with use_locale(LANGUAGES["de"]):
        assert translate(state.problems[0]).startswith("1 Klick ging verloren")
        assert translate(state.dependencies["redis"].detail or "") == "Keine Antwort."


@on_sqlite
async def test_a_failed_job_is_explained_in_the_language_of_the_page(
    client: AsyncClient, app: ServerNode, rt: Runtime, root: User
) -> None:
    async with rt.db.write() as session:
        now = rt.clock.now()
        session.add(
            Job(
                id=session.ids.next_id(),
                kind="links.check_safety",
                payload={},
                status=JobStatus.DEAD,
                run_at=now,
                created_at=now,
                finished_at=now,
                attempt_count=3,
                max_tries=3,
                last_error_code=LEASE_EXPIRED,
                last_error_message=LEASE_EXPIRED_MESSAGE.template,
            )
        )
        browser = by_cookie(rt, await make.cookie(session, rt, root)) | {"Accept": "text/html"}

    page = await client.get("/app/admin/jobs", headers=browser | {"Accept-Language": "de"})

    assert "Der Worker wurde beendet, bevor der Auftrag fertig war." in page.text
