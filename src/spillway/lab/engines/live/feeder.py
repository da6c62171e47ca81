"""The writer of a live run: makes waiting files visible when they are due, and records when it did.

A program of the standard library alone, so that it starts at once in any environment and takes little memory.
A file appears by a hard link: with all its bytes at once, as after a rename. Its modification time is set
just before, because Spark's file source orders by it. The recorded time is taken before the link, so a
measured latency is never too short.
"""

import argparse
import json
import os
import time
from pathlib import Path


def feed(
    waiting: Path, live: Path, streams: list[str], drops: int, interval_seconds: float
) -> dict[str, list[float]]:
    """Link all files, and return the time at which each one appeared, by stream and drop."""
    files = {stream: sorted((waiting / stream).iterdir())[:drops] for stream in streams}
    appeared: dict[str, list[float]] = {stream: [] for stream in streams}
    began = time.monotonic()
    for number in range(drops):
        delay = began + number * interval_seconds - time.monotonic()
        if delay > 0:
            time.sleep(delay)
        for stream in streams:
            source = files[stream][number]
            os.utime(source)
            appeared[stream].append(time.time())
            os.link(source, live / stream / source.name)
    return appeared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("waiting", type=Path)
    parser.add_argument("live", type=Path)
    parser.add_argument("log", type=Path, help="JSON file for the times")
    parser.add_argument("--streams", required=True, help="separated by commas")
    parser.add_argument("--drops", type=int, required=True)
    parser.add_argument("--interval-seconds", type=float, required=True)
    arguments = parser.parse_args()
    streams = arguments.streams.split(",")
    appeared = feed(arguments.waiting, arguments.live, streams, arguments.drops, arguments.interval_seconds)
    arguments.log.write_text(json.dumps(appeared))


if __name__ == "__main__":
    main()
