"""Fresh Debian root file systems, in which ways to install Refract are tried.

They need root (chroot, mount) and debootstrap, but no daemon and no virtual machine.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tools import packages

MIRROR = "http://deb.debian.org/debian"
RELEASE = "bookworm"
_HOST_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/pip.conf",
    "/etc/ssl/certs/ca-certificates.crt",
)
"""What the network of this machine needs: names, certificates, and where pip finds packages."""
_KEPT_VARIABLES = ("LANG", "SSL_CERT_FILE", "PIP_CERT", "PIP_DEFAULT_TIMEOUT")


class NotPossible(Exception):
    """No root file system can be made here; the message says what is missing."""


def require_programs(*names: str) -> None:
    """Install programs whose Debian packages are called like them, or raise."""
    if os.geteuid() != 0:
        raise NotPossible("This needs root, for chroot and mount.")
    missing = [name for name in names if shutil.which(name) is None]
    if missing and not (packages.may_install() and packages.apt_install(missing)):
        raise NotPossible(f"Install {' '.join(missing)} first.")


def create_root(directory: Path, *included: str) -> Path:
    """Create a minimal Debian with some packages, unless it is there."""
    if (directory / "etc/debian_version").exists():
        return directory
    require_programs("debootstrap")
    shutil.rmtree(directory, ignore_errors=True)
    unfinished = directory.with_name(f"{directory.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    wanted = ",".join(("ca-certificates", *included))
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={wanted}", RELEASE, unfinished, MIRROR],
        stdout=subprocess.DEVNULL,
        check=True,
    )
    for cached in (unfinished / "var/cache/apt/archives").glob("*.deb"):
        cached.unlink()
    unfinished.rename(directory)
    return directory


def copy_root(base: Path, directory: Path) -> Path:
    """Copy a root file system, and let it reach the network as this machine does."""
    subprocess.run(["cp", "-a", "--reflink=auto", base, directory], check=True)
    for name in _HOST_FILES:
        source, target = Path(name), directory / name[1:]
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copyfile(source, target)
    return directory


def start_in_root(
    root: Path, script: str, output: Path, **variables: str
) -> "subprocess.Popen[bytes]":
    """Start a shell script in a root file system. Everything that it starts ends with it."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL"]
    with output.open("ab") as sink:
        return subprocess.Popen(
            [*namespaces, f"--root={root}", "--mount-proc", "sh", "-euc", script],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env={"PATH": path, "HOME": "/root", **kept, **variables},
        )


def run_in_root(root: Path, script: str, output: Path, **variables: str) -> None:
    """Run a shell script in a root file system to its end; raise with its output if it fails."""
    with start_in_root(root, script, output, **variables) as process:
        code = process.wait()
    if code != 0:
        raise NotPossible(f"{script!r} ended with {code}:\n{output.read_text()[-3000:]}")


def measure_disk(root: Path) -> float:
    """Return the megabytes that a root file system takes, without what lies in its /proc."""
    done = subprocess.run(
        ["du", "--summarize", "--one-file-system", "--block-size=1", root],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.split()[0]) / 1e6
