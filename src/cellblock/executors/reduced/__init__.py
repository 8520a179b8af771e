"""`walls="reduced"`: workers behind Landlock, a system call filter and limits, where a machine gives no namespaces."""
