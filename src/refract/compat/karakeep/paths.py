"""Ids in paths and sizes of pages."""

from refract.compat.karakeep.errors import KarakeepObjectNotFound
from refract.compat.request import DialectRequest

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
_MAX_ID = 2**63 - 1


def parse_object_id(text: str) -> int:
    """Return one of our ids from its text. Raises `KarakeepObjectNotFound`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= _MAX_ID):
        raise KarakeepObjectNotFound
    return int(text)


def get_object_id(request: DialectRequest, name: str) -> int:
    """Return the id in the path of a request. Raises `KarakeepObjectNotFound`."""
    return parse_object_id(str(request.path_params[name]))


def read_limit(request: DialectRequest) -> int:
    return request.get_int("limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
