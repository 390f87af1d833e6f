"""The `refract` command."""

import atexit
import gc


def main() -> None:
    """Run a command.

    The garbage collector leaves loaded modules alone: scanning them, at intervals and when the
    interpreter ends, took half of the CPU time of a short command.
    """
    gc.disable()
    atexit.register(gc.freeze)
    from refract.cli.commands import run  # noqa: PLC0415 - after the collector is off

    run()
