"""The container image: built without a daemon, run as an operator would, and judged.

    make image                      build, run, judge
    make image ARGS="--keep DIR"    keep the store of images, to look into it with podman --root DIR

The base is a fresh Debian of the package mirror, since a build must not depend on a registry of
images. A container of it gets no root, no writable root file system, and only its volume.
"""

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.markers import Marker

from tools.debian_root import NotPossible, copy_root, create_root, measure_disk, require_programs
from tools.release import artifacts
from tools.sbom import components
from tools.servers import free_port

MAX_REFRACT_MB: Final = 450.0
"""What the image may add to its base, unpacked, with the drivers of all databases."""
PATIENCE_SECONDS: Final = 120.0
BASE_NAME: Final = "localhost/refract-base"
IMAGE_NAME: Final = "localhost/refract"
USER: Final = "10001"
_HOST_NETWORK = (
    "/etc/pip.conf",
    "/etc/ssl/certs/ca-certificates.crt",
)
_LIST_PACKAGES = """
import importlib.metadata, json, platform
found = {one.metadata["Name"].lower(): one.version for one in importlib.metadata.distributions()}
print(json.dumps([platform.python_version(), found]))
"""


class ImageRefused(Exception):
    """The image does not keep what it promises; the message says what."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a store of its own."""

    store: Path
    refract_mb: float

    def podman(self, *words: str) -> list[str]:
        """Return a command of podman on this store."""
        runtime = ["--runtime", "runc", "--cgroup-manager", "cgroupfs"]
        return ["podman", *_list_store_options(self.store), *runtime, *words]


@dataclass(frozen=True, slots=True)
class Container:
    """A container that runs."""

    image: Image
    name: str
    port: int

    @property
    def pid(self) -> int:
        """The first process of the container."""
        return int(_run(self.image.podman("inspect", "--format", "{{.State.Pid}}", self.name)))

    def refract(self, *words: str) -> str:
        """Run a command in the container, and return what it printed."""
        return _run(self.image.podman("exec", self.name, "refract", *words))


def build_image(base: Path, work: Path) -> Image:
    """Build the image of the last commit on a minimal Debian, in a store below `work`."""
    require_programs("buildah", "podman", "runc", "conmon")
    store, tree, root = work / "store", work / "tree", work / "root"
    artifacts.export_tree("HEAD", tree)
    copy_root(create_root(base, "python3", "python3-venv"), root)
    buildah = ["buildah", *_list_store_options(store)]
    container = _run([*buildah, "from", "scratch"])
    _run([*buildah, "add", "--quiet", container, str(root), "/"])
    _run([*buildah, "commit", "--quiet", "--format", "docker", container, BASE_NAME])
    _run([*buildah, "rm", container])
    shared = [
        word
        for file in _HOST_NETWORK
        if Path(file).exists()
        for word in ("--volume", f"{file}:{file}:ro")
    ]
    arguments = ["--build-arg", f"BASE={BASE_NAME}", "--build-arg", f"COMPILER={_COMPILER}"]
    # The Docker format: the other one has no health check.
    how = ["--isolation", "chroot", "--network", "host", "--pull-never", "--format", "docker"]
    file = ["-t", IMAGE_NAME, "-f", str(tree / "deploy/Containerfile"), str(tree)]
    _run([*buildah, "build", "--quiet", *how, *arguments, *shared, *file])
    container = _run([*buildah, "from", "--pull-never", IMAGE_NAME])
    mounted = Path(_run([*buildah, "mount", container]))
    refract_mb = measure_disk(mounted / "opt/refract")
    _run([*buildah, "rm", container])
    return Image(store, refract_mb)


_COMPILER = "gcc libc6-dev python3-dev"  # with Debian's Python


@contextmanager
def run_container(image: Image, data: Path, name: str = "refract") -> Iterator[Container]:
    """Run the image with a directory as its volume until the block ends, then stop it."""
    data.mkdir(exist_ok=True)
    _run(["chown", f"{USER}:{USER}", str(data)])
    port = free_port()
    settings = {
        "REFRACT_ENVIRONMENT": "development",
        "REFRACT_BASE_URL": f"http://localhost:{port}",
        "REFRACT_PORT": str(port),
    }
    given = [word for key, value in settings.items() for word in ("-e", f"{key}={value}")]
    limits = ["--ulimit", "nofile=20000:20000", "--ulimit", "nproc=20000:20000"]
    bounds = ["--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges"]
    volume = ["-v", f"{data}:/var/lib/refract"]
    where = ["-d", "--name", name, "--network", "host"]
    _run(image.podman("run", *where, *bounds, *limits, *given, *volume, IMAGE_NAME))
    container = Container(image, name, port)
    try:
        _wait_until_ready(container)
        yield container
    finally:
        _run(image.podman("stop", "--time", "30", name))
        code = _run(image.podman("inspect", "--format", "{{.State.ExitCode}}", name))
        _run(image.podman("rm", name))
    if code != "0":
        raise ImageRefused(f"The container ended with {code} when it was stopped.")


def judge(image: Image, work: Path) -> None:
    """Raise if the image does not keep what it promises."""
    data = work / "data"
    with run_container(image, data) as container:
        if _run(image.podman("exec", container.name, "id", "-u")) != USER:
            raise ImageRefused("The container does not run as its own user.")
        _run(image.podman("healthcheck", "run", container.name))
        container.refract("shorten", "https://example.com/", "--name", "first")
        _expect_redirect(container)
        _compare_packages(
            _run(image.podman("exec", container.name, "python", "-c", _LIST_PACKAGES))
        )
    with run_container(image, data, "refract-again") as container:
        _expect_redirect(container)
        if '"stored": 2' not in container.refract("status", "--json"):
            raise ImageRefused("The clicks of the first container are not in the second.")
    if image.refract_mb > MAX_REFRACT_MB:
        raise ImageRefused(f"/opt/refract has {image.refract_mb:.0f} MB.")


def _compare_packages(listed: str) -> None:
    """Raise unless the image holds exactly the packages of the bill of materials."""
    python, installed = json.loads(listed)
    lock = _drop_absent((artifacts.ROOT / "requirements.lock").read_text(), python)
    expected = {part["name"]: part["version"] for part in components(lock)}
    found = {
        name.replace("_", "-").replace(".", "-"): version for name, version in installed.items()
    }
    for tool in ("pip", "setuptools", "refract-links"):
        found.pop(tool, None)
    if found != expected:
        different = sorted({*found.items()} ^ {*expected.items()})
        raise ImageRefused(f"Image and bill of materials differ: {different}")


def _drop_absent(lock: str, python: str) -> str:
    """Return a lock without what is for other systems or versions of Python."""
    environment = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
    kept, keeps = [], True
    for line in lock.splitlines(keepends=True):
        if line[:1].isalnum():
            marker = line.partition(" ; ")[2].removesuffix("\\\n").strip()
            keeps = not marker or Marker(marker).evaluate(environment)
        if keeps:
            kept.append(line)
    return "".join(kept)


def _wait_until_ready(container: Container) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            if _get(container.port, "/ready") == http.client.OK:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise ImageRefused(f"Not ready: {_run(container.image.podman('logs', container.name))}")


def _expect_redirect(container: Container) -> None:
    status = _get(container.port, "/first")
    if status != http.client.FOUND:
        raise ImageRefused(f"/first was answered with {status}.")


def _get(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def _list_store_options(store: Path) -> list[str]:
    return ["--root", str(store), "--runroot", f"{store}-run", "--storage-driver", "vfs"]


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        output = done.stdout[-1500:] + done.stderr[-3000:]
        raise ImageRefused(f"{' '.join(command)} ended with {done.returncode}:\n{output}")
    return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tools.image")
    parser.add_argument("--keep", type=Path, help="keep everything in this directory")
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="refract-image-", dir="/var/tmp") as directory:
            work = given.keep or Path(directory)
            work.mkdir(parents=True, exist_ok=True)
            image = build_image(work / "base", work)
            judge(image, work)
    except NotPossible as exc:
        print(f"No image was built: {exc}", file=sys.stderr)
        return 3
    except ImageRefused as exc:
        print(exc, file=sys.stderr)
        return 1
    print(
        f"The image was built and run: {image.refract_mb:.0f} MB beside its base, as user {USER},"
        " read-only, healthy, stopped cleanly, with its data in a second container."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
