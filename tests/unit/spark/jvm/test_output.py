"""What a JVM writes to its standard error is read, bounded, and shown only if asked for."""

import subprocess
import sys

import pytest

from spillway.spark.jvm import output
from spillway.spark.jvm.output import KEPT_BYTES, JvmOutput

PROGRAM = "import sys; sys.stderr.write('WARNING: incubator\\n' + 'x' * {fill} + '\\nERROR: broken\\n')"


def said(fill: int, *, echo: bool = False) -> str:
    made = JvmOutput(echo=echo)
    process = subprocess.Popen([sys.executable, "-c", PROGRAM.format(fill=fill)], stderr=made.writing_end)
    made.release()
    assert process.wait() == 0
    made._thread.join(10)
    return made.text()


def test_nothing_reaches_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    text = said(5)
    assert text == "WARNING: incubator\nxxxxx\nERROR: broken\n"
    assert capfd.readouterr() == ("", "")


def test_only_the_last_part_is_kept() -> None:
    text = said(4 * KEPT_BYTES)
    assert text.endswith("x\nERROR: broken\n")
    assert "WARNING" not in text
    assert len(text) <= KEPT_BYTES + (1 << 16)


def test_it_is_shown_if_asked_for_line_by_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(output, "cleaned", lambda line: seen.append(line) or line.replace("broken", "***"))
    said(200_000, echo=True)
    shown = capfd.readouterr().err
    assert shown.startswith("WARNING: incubator\n") and shown.endswith("ERROR: ***\n")
    assert [len(line) for line in seen] == [18, 200_000, 13]
