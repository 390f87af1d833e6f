"""The base of what foreign clients send."""

from pydantic import BaseModel, ConfigDict


class ForeignFields(BaseModel):
    """The fields of a foreign client's body. Unknown ones are ignored: clients send many."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)
