"""A session: cells run in order over one namespace and one set of files."""
