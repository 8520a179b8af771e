"""The programs that run inside the walls. Needs the standard library and this package's lower layers, nothing else."""
