"""The `newkind` command, also as `python -m newkind`."""

import signal

# Before a verb runs there is nothing to finish or to print: Ctrl-C ends the process at once, and not with a traceback of
# whatever is being imported. Where the shell ignores it, for a job in the background, it stays ignored.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from newkind.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
