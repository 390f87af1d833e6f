"""Releases: equal bytes from one commit, and nothing of the machine that built them."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools.release import __main__ as release
from tools.release import artifacts, debian
from tools.release.version import ReleaseRefused, read_changes, read_version

ROOT = Path(__file__).parents[2]
EPOCH = "1700000000"


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    """Unpacked libraries, one of them with a compiled module."""
    directory = tmp_path / "libraries"
    (directory / "refract").mkdir(parents=True)
    (directory / "refract/__init__.py").write_text("")
    compiled = directory / "refract/_lane.so"
    compiled.write_bytes(b"\x7fELF")
    compiled.chmod(0o755)
    return directory


def _write_project(tree: Path, version: str, changes: str) -> None:
    (tree / "pyproject.toml").write_text(f'[project]\nversion = "{version}"\n')
    (tree / "CHANGELOG.md").write_text(changes)


def test_packages_of_one_commit_are_equal_and_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "TARGET", tmp_path / "release")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)

    release.release(("wheels",), dry_run=True)

    sums = (tmp_path / "release/SHA256SUMS").read_text()
    assert sums.count("\n") == 5
    assert "  NOTES.md" in sums
    assert "  sbom.json" in sums
    (pure,) = (tmp_path / "release").glob("*-py3-none-any.whl")
    (compiled,) = {*(tmp_path / "release").glob("*.whl")} - {pure}
    (source,) = (tmp_path / "release").glob("*.tar.gz")
    assert not any(name.endswith(".so") for name in zipfile.ZipFile(pure).namelist())
    modules = [name for name in zipfile.ZipFile(compiled).namelist() if name.endswith(".so")]
    assert len(modules) == 2
    for name in modules:
        content = zipfile.ZipFile(compiled).read(name)
        assert str(tmp_path).encode() not in content
        assert b"/tmp/" not in content
    subprocess.run(
        ["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=tmp_path / "release", check=True
    )
    assert source.stat().st_size > 1_000_000


def test_builds_that_differ_are_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "TARGET", tmp_path / "release")
    bytes_of_builds = iter((b"one", b"two"))

    def build(_commit: str, _parts: tuple[str, ...], _heading: str, target: Path) -> None:
        (target / "same.whl").write_bytes(b"same")
        (target / "other.whl").write_bytes(next(bytes_of_builds))

    monkeypatch.setattr(release, "build", build)
    with pytest.raises(ReleaseRefused, match=r"these files differ: other\.whl"):
        release.release(("wheels",), dry_run=True)
    assert not (tmp_path / "release/SHA256SUMS").exists()


@pytest.mark.parametrize("version", ["1.0", "1.2.3.dev4", "v1.2.3", "1.2.3-rc1"])
def test_a_version_is_semantic(tmp_path: Path, version: str) -> None:
    _write_project(tmp_path, version, "")
    with pytest.raises(ReleaseRefused, match="not one of semantic versioning"):
        read_version(tmp_path)


def test_the_changes_of_a_version_are_its_section(tmp_path: Path) -> None:
    _write_project(
        tmp_path,
        "0.2.0",
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2027-01-02)\n\n- New.\n\n## 0.1.0\n\n- Old.\n",
    )
    assert read_changes(tmp_path, read_version(tmp_path)) == "- New."
    with pytest.raises(ReleaseRefused, match="no changes under “## Unreleased”"):
        read_changes(tmp_path, "Unreleased")
    with pytest.raises(ReleaseRefused, match=r"no changes under “## 0\.3\.0”"):
        read_changes(tmp_path, "0.3.0")


def test_the_debian_package_holds_program_units_and_settings(
    tmp_path: Path, libraries: Path
) -> None:
    packages = []
    for name in ("first", "second"):
        root = tmp_path / name
        previous = os.umask(0o077 if name == "first" else 0o002)
        try:
            debian.write_package_tree(libraries, ROOT, "0.2.0-rc.1", root)
        finally:
            os.umask(previous)
        packages.append(tmp_path / f"{name}.deb")
        debian.build_debian_package(root, packages[-1], EPOCH)

    assert packages[0].read_bytes() == packages[1].read_bytes()
    listed = subprocess.run(
        ["dpkg-deb", "--contents", packages[0]], capture_output=True, text=True, check=True
    ).stdout
    lines = {line.split()[5]: line.split()[:2] for line in listed.splitlines()}
    assert lines["./opt/refract/bin/refract"] == ["-rwxr-xr-x", "root/root"]
    assert lines["./opt/refract/lib/refract/_lane.so"] == ["-rwxr-xr-x", "root/root"]
    assert lines["./etc/refract/refract.env"] == ["-rw-r-----", "root/root"]
    assert "./lib/systemd/system/refract.service" in lines
    fields = subprocess.run(
        ["dpkg-deb", "--field", packages[0], "Version", "Depends"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    this = sys.version_info.minor
    assert "Version: 0.2.0~rc.1\n" in fields
    assert f"Depends: python3 (>= 3.{this}~), python3 (<< 3.{this + 1}~), passwd\n" in fields


@pytest.mark.parametrize("script", ["postinst", "prerm", "postrm"])
def test_scripts_of_the_package_are_valid_shell(
    tmp_path: Path, libraries: Path, script: str
) -> None:
    debian.write_package_tree(libraries, ROOT, "0.2.0", tmp_path / "root")
    subprocess.run(["sh", "-n", tmp_path / "root/DEBIAN" / script], check=True)


def test_a_wheel_is_unpacked_without_its_scripts(tmp_path: Path) -> None:
    wheel = tmp_path / "some-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some/__init__.py", "")
        archive.writestr("some-1.0.data/purelib/other.py", "")
        archive.writestr("some-1.0.data/scripts/some", "#!python")
    artifacts.unpack_wheel(wheel, tmp_path / "out")
    found = {
        file.relative_to(tmp_path / "out").as_posix()
        for file in (tmp_path / "out").rglob("*")
        if file.is_file()
    }
    assert found == {"some/__init__.py", "other.py"}


def test_a_mistake_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(_parts: tuple[str, ...], *, dry_run: bool) -> None:
        assert dry_run
        raise ReleaseRefused("it is Sunday.")

    monkeypatch.setattr(release, "release", refuse)
    monkeypatch.setattr(sys, "argv", ["release", "--dry-run"])
    assert release.main() == 1
