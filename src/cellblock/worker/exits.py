"""Exit of a worker when the runner in it cannot go on. Any cell can leave so as well."""

from __future__ import annotations

CHANGED = 71
"""The runner failed while it carried out a request."""
CHANGED_BETWEEN = 72
"""The runner was found changed between two requests; it took none after that."""
MEMORY = 73
"""The runner had no memory for what came, or for what it was to say."""

REASONS = {
    CHANGED: "ended itself: its runner failed, as it does when a cell has changed it",
    CHANGED_BETWEEN: "ended itself: a cell had changed its runner",
    MEMORY: "ended itself: it ran out of memory",
}
