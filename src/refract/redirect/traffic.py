"""What the lanes of one process share: the table, the turn, and the date of their answers."""

import asyncio
import time
from collections.abc import Callable, Container

from refract.analytics.spool import Spool, Turn
from refract.core.address import TrustedProxies
from refract.redirect import answer
from refract.redirect.table import Table
from refract.web.connections import Limits, OpenConnections


class Traffic(OpenConnections):
    """The connections of a process that redirects."""

    def __init__(
        self,
        table: Table,
        spool: Spool,
        *,
        proxies: TrustedProxies | None = None,
        limits: Limits | None = None,
        hosts: Container[bytes] | None = None,
        count_refusal: Callable[[str], None] | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__(proxies=proxies, limits=limits, hosts=hosts, count_refusal=count_refusal)
        self.table = table
        self.turn = Turn(spool, lambda call: asyncio.get_running_loop().call_soon(call), self._ending())
        self.now_ns = now_ns

    def stop(self) -> None:
        """End the sweep and send what is left. The spool is its owner's to close."""
        super().stop()
        self.turn.commit()

    def sweep(self) -> None:
        """Renew the date, and let every connection see whether its time is up."""
        self.turn.ending = self._ending()
        super().sweep()

    @staticmethod
    def _ending() -> bytes:
        return answer.ending(time.time())
