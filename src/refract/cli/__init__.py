"""The `refract` command."""


def main() -> None:
    from refract.cli.commands import run  # noqa: PLC0415 - a server process, which lives in this package too, needs none of it

    run()
