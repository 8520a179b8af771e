"""The `local` level: cells in a thread of the host, behind the guard and nothing else."""
