"""Requirements of the schema for the program that uses it."""

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from refract.core.db.types import Model, text_key


class SchemaRequirement(Model):
    """A revision that older code cannot run on. Additive revisions have no row."""

    __tablename__ = "schema_requirements"

    revision: Mapped[str] = mapped_column(text_key(16), primary_key=True)
    version: Mapped[str] = mapped_column(String(32))
    """The oldest version of Refract that knows the revision."""
