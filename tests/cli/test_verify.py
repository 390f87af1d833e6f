"""`refract verify --acknowledge`.

Regression: after damage to the spool `verify` failed forever, with no way to accept the loss.
"""

from pathlib import Path

from tests.serving import refract


def test_a_loss_can_be_acknowledged_and_stays_on_record(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert refract("migrate", "--data-dir", str(data)).returncode == 0
    aside = data / "spool/set-aside"
    aside.mkdir(mode=0o700, parents=True)
    (aside / "00-00000001-16.bytes").write_bytes(b"x" * 90)

    red = refract("verify", "--data-dir", str(data))
    assert (red.returncode, "00-00000001-16.bytes" in red.stderr) == (1, True)

    green = refract("verify", "--acknowledge", "--data-dir", str(data))
    assert (green.returncode, "Acknowledged 00-00000001-16" in green.stdout) == (0, True)
    again = refract("verify", "--data-dir", str(data))
    assert (again.returncode, "90 bytes in 1 place" in again.stdout) == (0, True)
