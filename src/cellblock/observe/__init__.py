"""Observability: the log of a run, and the redaction of what is kept out of it."""
