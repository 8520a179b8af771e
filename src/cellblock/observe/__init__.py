"""What happened, for people and programs: the log of a run, and what is kept out of it."""
