"""The first process of a session: it keeps the files, watches what is held, and ends what must end."""
