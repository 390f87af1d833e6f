"""Jobs that a change of a link asks for, in its own transaction."""

from collections.abc import Sequence
from typing import ClassVar

from refract.core.db import WriteSession
from refract.core.rows import slices
from refract.jobs.payload import Payload
from refract.jobs.queue import JobSource, enqueue_all


class RecheckLinks(Payload):
    """Links whose destination is to be checked now, for instance because the checking service was away when they were made."""

    kind: ClassVar[str] = "links.recheck"

    link_ids: list[int]


async def check_later(session: WriteSession, source: JobSource, link_ids: Sequence[int]) -> None:
    """Have the destinations of these links checked, as soon as the service can be asked."""
    await enqueue_all(session, source, [RecheckLinks(link_ids=list(some)) for some in slices(list(link_ids))])
