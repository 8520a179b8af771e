"""`walls="reduced"`: the processes of sessions that stand behind Landlock, a filter and limits, without namespaces."""
