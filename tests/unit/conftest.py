"""What unit tests share."""

from collections.abc import Callable

import pytest

from spillway.cli.app import main

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs the command line in this process; its exit code, output and error output."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["spillway", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        output, error = capsys.readouterr()
        return int(ended.value.code or 0), output, error

    return run
