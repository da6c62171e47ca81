"""Maintains a view round after round until it is killed, and says so. Usage: busy_manager.py JOB.toml"""

import sys

from spillway.job import read_maintain_job
from spillway.maintain.maintenance import open_maintenance


def main() -> None:
    with open_maintenance(read_maintain_job(sys.argv[1])) as maintenance:
        maintenance.manager.start()
        print("ready", flush=True)
        while True:
            if maintenance.manager.round() is not None:
                print("round", flush=True)


if __name__ == "__main__":
    main()
