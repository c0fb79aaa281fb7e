"""`python -m newkind` is the `newkind` command."""

from newkind.cli import main

if __name__ == "__main__":
    main()
