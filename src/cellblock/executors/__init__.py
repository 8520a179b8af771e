"""Where a worker runs and what stands around it."""
