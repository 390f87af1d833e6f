"""Steps in the life of a link, for its own page and for the table of links."""

from collections.abc import Awaitable, Callable
from typing import Final

from refract.core.db.session import WriteSession
from refract.core.runtime import Runtime
from refract.identity.authentication import Caller
from refract.links import service
from refract.links.dependencies import to_link_caller
from refract.names.service import Namespace

LinkStep = Callable[[WriteSession, Runtime, Namespace, Caller, int], Awaitable[service.LockedLink]]

STEPS: Final[dict[str, LinkStep]] = {
    "disable": lambda session, rt, _space, actor, link_id: service.disable_link(
        session, to_link_caller(actor), link_id, rt.clock.now()
    ),
    "enable": lambda session, rt, _space, actor, link_id: service.enable_link(
        session, to_link_caller(actor), link_id, rt.clock.now()
    ),
    "renew": lambda session, rt, _space, actor, link_id: service.renew_link(
        session, to_link_caller(actor), link_id, rt.clock.now()
    ),
    "delete": lambda session, rt, _space, actor, link_id: service.delete_link(
        session, to_link_caller(actor), link_id, rt.clock.now()
    ),
    "undo": lambda session, _rt, space, actor, link_id: service.undo_link(
        session, space, to_link_caller(actor), link_id
    ),
}
BULK_STEPS: Final = STEPS.keys() - {"renew"}
UNDOABLE_STEPS: Final = frozenset({"disable", "delete"})
