"""stub"""

from refract.compat.dialect import Dialect


class KuttDialect(Dialect):
    list_operations = get_key = make_error_response = None
    name = "kutt"
    roots = ()
