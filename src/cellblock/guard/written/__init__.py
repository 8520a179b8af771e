"""Modules of the standard library that a world runs from the running Python's own source, checked as cells are."""
