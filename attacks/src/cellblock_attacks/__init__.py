"""Attacks on a session, as data: what the tests and `cellblock doctor --attack` try, and what shows that a wall holds.

`python -m cellblock_attacks CANARY NAME…` makes them in a real session of a host that holds canaries. Imports nothing
but cellblock and the standard library, so that it runs under any account's Python.
"""
