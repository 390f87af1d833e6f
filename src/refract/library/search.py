"""Finding items by their words."""

from refract.core.db import WriteSession
from refract.library.models import Item


async def index(session: WriteSession, item: Item) -> None:
    """Take in an item's words anew: title, summary, text, fetched page and tags. Called after every change of any of them."""
