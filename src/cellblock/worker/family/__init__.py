"""The processes that sessions come from: what the host executes, and the processes that make others."""
