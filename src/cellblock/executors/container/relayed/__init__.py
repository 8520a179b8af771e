"""Sessions in containers whose kernel is not the host's: nothing but bytes passes between, and files by a mount."""
