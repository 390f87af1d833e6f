"""`refract import` and `refract export` with all they can bring and write: links, and the library."""

from refract.cli.export import app as writing
from refract.cli.imports import app as bringing
from refract.cli.library.import_export import (
    export_library,
    import_library,
    list_imports,
    roll_back,
)

writing.command("library")(export_library)
bringing.command("library")(import_library)
bringing.command("list")(list_imports)
bringing.command("rollback")(roll_back)
