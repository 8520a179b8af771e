"""The names that rewritten code calls the guard by. All hold a dot, which no name in source can.

They are looked up among the builtins of the code's world. A cell can neither bind nor read one: identifiers have no
dots, and every function that binds names by text takes identifiers only.
"""

from __future__ import annotations

READ = "read."
"""Before an attribute's name: the set of types on which it may be read."""
WRITE = "write."
"""Before an attribute's name: the set of types on which it may be set."""
REACH = "reach."
"""Before an attribute's name: a function that gives its argument back if the attribute may be read on it."""
SWAP = "swap."
"""Before a method's name: what binds the guard's own method to an object, by the object's type."""
GATE = "gate.read"
GATE_WRITE = "gate.write"
GATE_DELETE = "gate.delete"
TYPE = "guard.type"
NUMBERS = "guard.numbers"
MULTIPLY = "size.multiply"
POWER = "size.power"
SHIFT = "size.shift"
MODULO = "size.modulo"
FORMAT = "size.format"
STOP = "stop.class"
STOPPING = "stop.flag"
FOREIGN = "stop.foreign"
ESCAPING = "stop.escaping"
SPLIT = "stop.split"
ENTER = "stop.manager"
ENTER_ASYNC = "stop.manager_async"
MATCH = "guard.match"
RANGE = "guard.range"
RANGE_REAL = "guard.range_real"
TEMPORARY = "t."
