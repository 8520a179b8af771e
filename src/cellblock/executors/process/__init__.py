"""`isolated`: workers are forked processes behind namespaces, Landlock, seccomp and resource limits."""
