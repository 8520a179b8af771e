"""What runs inside the walls. Needs the standard library and this package's lower layers, nothing else."""
