"""The tests in `sealed` open sockets to foreign addresses: they are collected only inside a network namespace of their own."""

import os

collect_ignore = [] if os.environ.get("REFRACT_TEST_SEALED") else ["sealed"]
