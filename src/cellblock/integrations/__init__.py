"""Sessions for other frameworks. Each module needs an extra, and says so where its package is missing."""
