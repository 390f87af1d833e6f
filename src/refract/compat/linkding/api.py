"""stub"""

from refract.compat.dialect import Dialect


class LinkdingDialect(Dialect):
    list_operations = get_key = make_error_response = None
    name = "linkding"
    roots = ()
