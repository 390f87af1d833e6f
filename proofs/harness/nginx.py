"""A balancer in front of several instances, as an operator would run it."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import create_connection

from tools import packages
from tools.servers import free_port
from tools.services import VARIABLES

# A try on a server that just left goes to the next one; what has been sent and may have taken
# effect (POST) is never sent twice.
CONFIG = """
worker_processes 1;
daemon off;
pid {home}/nginx.pid;
error_log {home}/nginx-error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  client_body_temp_path {home}/body;
  proxy_temp_path {home}/proxy;
  fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi;
  scgi_temp_path {home}/scgi;
  upstream refract {{
{servers}
    keepalive 32;
    keepalive_timeout 4s;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    keepalive_requests 1000000;
    location / {{
      proxy_pass http://refract;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_connect_timeout 2s;
      proxy_next_upstream error timeout;
    }}
  }}
}}
"""


@contextmanager
def nginx(home: Path, ports: Sequence[int]) -> Iterator[int]:
    """The port it listens on."""
    program = os.environ.get(VARIABLES["nginx"]) or packages.find("nginx")
    if program is None:
        raise SystemExit("nginx is absent: install the Debian package nginx-light")
    port = free_port()
    servers = "\n".join(f"    server 127.0.0.1:{one} max_fails=0;" for one in ports)
    config = home / "nginx.conf"
    config.write_text(CONFIG.format(home=home, port=port, servers=servers))
    home.chmod(0o755)
    process = subprocess.Popen(
        [program, "-c", str(config), "-p", str(home)], stderr=subprocess.DEVNULL
    )
    try:
        _wait_for(port)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(OSError), create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError("nginx does not listen")
