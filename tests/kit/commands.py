"""The command line, called in this process: its exit code, standard output and error output."""

from collections.abc import Callable

import pytest

Call = Callable[..., tuple[int, str, str]]


def caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    from spillway.cli.app import main

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["spillway", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        output, error = capsys.readouterr()
        return int(ended.value.code or 0), output, error

    return call
