"""A process that was paused: a suspended machine, a frozen container, a blocked disk."""

import asyncio
import os
import signal
from pathlib import Path

from proofs.harness import stage
from proofs.harness.ears import ears
from proofs.harness.site import site
from proofs.harness.wire import get, request

LONG = 6.0  # more than a connection may be idle, and more than a change may take to be heard of


async def test_requests_that_came_meanwhile_are_answered_and_never_with_what_changed_meanwhile(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, workers=2, REFRACT_BACKGROUND="inline") as made, made.runtime() as rt:
        link, other = await stage.plant(rt, 2)
        key = await stage.make_key(rt)
        made.start()
        await made.until_complete()
        async with ears(made, 4) as found:
            (_, awake), (sleeper, asleep) = found.items()
            for ear in (*awake, *asleep):
                for one in (link, other):
                    assert (await ear.ask(get(f"/{one.name}"))).status == 302
            assert (
                await asleep[0].ask(get("/health"))
            ).status == 200  # so that it rests as one that was answered by the application
            os.kill(sleeper, signal.SIGSTOP)
            try:
                change = await awake[0].ask(
                    request("POST", f"/api/v1/links/{link.id}/disable", b"", f"x-api-key: {key}")
                )
                assert change.status == 200
                paths = [get(f"/{one.name}") for one in (link, other, link, other)]
                asked = [
                    asyncio.create_task(ear.ask(path))
                    for ear, path in zip(asleep, paths, strict=True)
                ]
                await asyncio.sleep(LONG)
            finally:
                os.kill(sleeper, signal.SIGCONT)
            answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [getattr(answer, "status", answer) for answer in answers] == [410, 302, 410, 302]
        assert await made.stop() == 0
