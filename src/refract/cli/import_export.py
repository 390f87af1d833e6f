"""`refract import` and `refract export`: links and the library."""

from refract.cli.export import app as export_app
from refract.cli.imports import app as import_app
from refract.cli.library.import_export import export_library, import_library
from refract.cli.past_imports import list_imports, roll_back

export_app.command("library")(export_library)
import_app.command("library")(import_library)
import_app.command("list")(list_imports)
import_app.command("rollback")(roll_back)
