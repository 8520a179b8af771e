"""Sessions in a container with a kernel of its own: a relay, and the worker whose socket and pipes it passes on."""
