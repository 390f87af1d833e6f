"""Where processes that Refract starts find its modules.

`sys.executable` alone is not enough: in a single file the interpreter is the system's, and the
directory that the program was unpacked to is known to the running process only.
"""

import os
from pathlib import Path

import refract


def format_import_path() -> str:
    """Return the `PYTHONPATH` of a child: this program's directory, then what was given to us."""
    own = str(Path(refract.__file__).parents[1])
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(dict.fromkeys([own, *filter(None, given)]))
