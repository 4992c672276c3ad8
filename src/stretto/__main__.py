"""`python -m stretto` is the command `stretto`."""

from stretto.cli import run

if __name__ == "__main__":
    run()
