"""A memory tier that is full names its host and directory, and leaves no half-written image."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "full_memory.py"


def test_a_full_memory_tier_names_host_and_directory(tmp_path: Path, on_a_host: list[str]) -> None:
    inside = f'hostname tiny && mount -t tmpfs -o size=1m small {tmp_path} && exec "$@"'
    command = [*on_a_host, "sh", "-c", inside, "host", sys.executable, str(SCRIPT), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    error, left = done.stdout.splitlines()
    assert error.startswith(f"host tiny cannot keep 4194304 bytes of state in {tmp_path}/tier, which has ")
    assert "No space left on device" in error and "lower [run] memory" in error
    assert left == "[]"
