"""stub"""

from refract.compat.dialect import Dialect


class YourlsDialect(Dialect):
    list_operations = get_key = make_error_response = None
    name = "yourls"
    roots = ()
