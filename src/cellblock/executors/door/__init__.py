"""The door: the one way from a session to the network, held by the host."""
