"""The cause of a SIGHUP: a closed terminal, or a request to reload."""

import errno
import termios


def is_terminal_closed() -> bool:
    """Return whether standard input, output or error is a terminal that was closed.

    Both cause SIGHUP. `systemctl reload` signals a process without a terminal, or with one that is
    still open.
    """
    for descriptor in (0, 1, 2):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as exc:
            if exc.args[0] == errno.EIO:
                return True
    return False
