"""Ready audits of libraries that are not Python's own."""
