"""Lets source run beside the host's own objects, and reach only what was given: parse, check, rewrite, compile.

Pure, of the standard library alone, and on CPython's own bytecode. `check` gives a `Program`, a `World` runs it.
"""
