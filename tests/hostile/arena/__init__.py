"""Attacks as data, and the program that runs them in a real session: `python -m arena CANARY NAME…`.

Imports nothing but cellblock and the standard library, so that it runs under any account's Python.
"""
