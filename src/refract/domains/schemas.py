"""Domains in requests and responses."""

from typing import Annotated

from pydantic import StringConstraints

from refract.domains.models import MAX_HOST_LENGTH

DomainHost = Annotated[
    str, StringConstraints(strip_whitespace=True, to_lower=True, max_length=MAX_HOST_LENGTH)
]
"""A host in a request. Left out or null, it means the default domain."""
