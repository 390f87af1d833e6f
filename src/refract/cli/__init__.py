"""The `refract` command."""

import gc


def main() -> None:
    gc.disable()  # nothing of what is being loaded is garbage; looking at all of it again and again would take a fifth of the time
    from refract.cli.commands import (  # noqa: PLC0415 - a server process, which lives in this package too, needs none of it
        run,
    )

    run()
