"""The table of click limits."""

from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model


class LinkLimit(Model):
    """Redirects of a link that were taken from its limit; no row means none.

    They are taken before they are sent, so this is never less than what visitors got. The limit
    itself is a field of the link, and may be changed at any time.
    """

    __tablename__ = "link_limits"

    link_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    taken: Mapped[int]
