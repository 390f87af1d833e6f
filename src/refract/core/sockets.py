"""A look at a connection that its event loop has not taken yet."""

import asyncio
import select


def unread(transport: asyncio.Transport) -> bool:
    """Whether something has arrived that nobody has read: a request that came as we were about to close is answered first."""
    if transport.is_closing():
        return False
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))
