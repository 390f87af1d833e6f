"""Tables of the rate limits."""

from datetime import datetime

from sqlalchemy import Double
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key


class LimitBucket(Model):
    """A token bucket charged in the transaction it limits, hence exact across processes."""

    __tablename__ = "limit_buckets"

    name: Mapped[str] = mapped_column(text_key(100), primary_key=True)
    tokens: Mapped[float] = mapped_column(Double)
    updated_at: Mapped[datetime]
