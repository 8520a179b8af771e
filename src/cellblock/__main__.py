"""`python -m cellblock` is the command line."""

import sys

from cellblock.cli import main

if __name__ == "__main__":
    sys.exit(main())
