"""What Kutt's clients send, in Kutt's words."""

from refract.compat.schemas import ForeignFields
from refract.links.schemas import LinkPassword


class KuttLinkFields(ForeignFields):
    """Fields of a link. Those that are absent, null or empty were not given."""

    target: str | None = None
    address: str | None = None
    customurl: str | None = None
    description: str | None = None
    expire_in: str | None = None
    password: LinkPassword | None = None
    reuse: bool | None = None
    domain: str | None = None
