"""Frozen copies of the worker: how one is made, what it lets go of, and what it finds when it wakes."""
