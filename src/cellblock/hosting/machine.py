"""The machine that this interpreter is made for.

The kernel may tell a program of another: under `linux32` a 64-bit interpreter is told `i686`.
"""

from __future__ import annotations

import os
import sys

MACHINE = ""
"""Such as `x86_64`; "" where it is no 64-bit Linux."""
if sys.platform == "linux" and sys.maxsize > 2**32:
    MACHINE = (getattr(sys.implementation, "_multiarch", "") or os.uname().machine).partition("-")[0]
