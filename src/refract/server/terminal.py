"""What a hang-up means: a terminal that closed, or somebody who asks for a reload."""

import errno
import termios


def is_terminal_closed() -> bool:
    """Whether standard input, output or error is a terminal that has been closed.

    Both send SIGHUP. `systemctl reload` comes to a process without a terminal, or with one that is still there.
    """
    for descriptor in (0, 1, 2):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as exc:
            if exc.args[0] == errno.EIO:
                return True
    return False
