"""The `refract` command."""

import atexit
import gc
import os


def main() -> None:
    """Run a command.

    The garbage collector leaves loaded modules alone: scanning them, at intervals and when the
    interpreter ends, took half of the CPU time of a short command.
    """
    gc.disable()
    atexit.register(gc.freeze)
    # Pydantic would look for plugins in the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from refract.cli.commands import run  # noqa: PLC0415 - after the collector is off

    run()
