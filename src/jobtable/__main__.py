"""`python -m jobtable` is the command `jobtable`."""

from jobtable.cli.main import run

if __name__ == "__main__":
    run()
