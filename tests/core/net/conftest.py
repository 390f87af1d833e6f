"""Tests in `sealed` open sockets to foreign addresses: collected only in a network namespace."""

import os

collect_ignore = [] if os.environ.get("REFRACT_TEST_SEALED") else ["sealed"]
