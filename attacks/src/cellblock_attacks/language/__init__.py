"""Attempts to get out of a session at the level local, as data, and the program that makes them, each in a process."""
