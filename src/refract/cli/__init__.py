"""The `refract` command."""

import atexit
import gc
import os
import sys


def main() -> None:
    """Run a command.

    The garbage collector leaves loaded modules alone: scanning them, at intervals and when the
    interpreter ends, took half of the CPU time of a short command.
    """
    gc.disable()
    atexit.register(gc.freeze)
    # Pydantic would look for plugins in the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _load_structlog()
    from refract.cli.commands import run  # noqa: PLC0415 - after the collector is off

    run()


def _load_structlog() -> None:
    """Import structlog without rich, which it would load to draw tracebacks. Ours are plain text.

    Commands that print tables import rich themselves, and less of it.
    """
    if "structlog" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # "not there", to the importer
    import structlog  # noqa: F401, PLC0415 - for its effect on `sys.modules`

    del sys.modules["rich"]
