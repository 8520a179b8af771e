"""Audits of the standard library's modules: what code may have of each. Each file's `AUDITS` is read by `audits`."""
