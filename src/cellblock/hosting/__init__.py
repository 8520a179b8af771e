"""The border to the program around the engine: what the engine relies on there is set, or looked at and named.

`inherited` is set in each process that is started, `sockets`, `loops`, `forks`, `threads`, `finalizers`, `clock` and
`unique` in the host's own; `shortage` names resources that run out, `paths` gives absolute paths;
`conditions` is the table of what can only be looked at, which openings and `cellblock doctor` read.
"""
