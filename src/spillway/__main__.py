"""`python -m spillway`: the command line of the Python that runs it, where no script is on the path."""

from spillway.cli import main

if __name__ == "__main__":
    main()
