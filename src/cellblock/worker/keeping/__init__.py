"""The names of a guarded world as portable data and checked source: read back by the guard, and never unpickled.

A group is a list of nodes, each `[kind, data, children]`: children are numbers of nodes of the same group, data is
portable. What `nodes` has no row for cannot be kept, and is told by its name, its type and a remedy.
"""

from cellblock.worker.keeping.read import Row, read
from cellblock.worker.keeping.write import FORM, Written, keep, unkept

__all__ = ["FORM", "Row", "Written", "keep", "read", "unkept"]
