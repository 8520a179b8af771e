"""Saving a session's names and loading them in a new process: of the standard library alone, in one process."""

from cellblock.worker.saving.codecs import offer
from cellblock.worker.saving.losses import at_once
from cellblock.worker.saving.restore import WrongVersion, load, replay, sources
from cellblock.worker.saving.snapshot import save, unsaved

__all__ = ["WrongVersion", "at_once", "load", "offer", "replay", "save", "sources", "unsaved"]
