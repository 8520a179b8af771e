"""What each class of threats is made of, and what tries it: attacks, attempts at the guard, or tests, by name."""

from __future__ import annotations

ITEMS: dict[str, dict[str, str]] = {
    "L1": {
        "attribute nodes": "private-attribute-node dunder-dict",
        "the getattr family": "private-through-getattr getattr-str-subclass hasattr-oracle-then-read",
        "class patterns, __match_args__": "class-pattern-keyword class-pattern-match-args",
        "format strings, Formatter fields": "str-format-attribute string-formatter-get-field",
        "attrgetter, methodcaller": "attrgetter methodcaller-getattribute",
        "keyword class arguments": "keyword-class-argument",
    },
    "L2": {
        "generators and coroutines": "gi-frame gi-frame-back cr-frame cr-await ag-frame",
        "tracebacks": "traceback-frame traceback-from-exit exception-group-tracebacks",
        "frames, code objects": "sys-getframe function-code-consts code-type-from-function",
    },
    "L3": {
        "type(x), __class__, mro": "type-of-vault-globals mro-method",
        "__subclasses__": "subclasses-of-object type-subclasses-unbound",
        "metaclasses, type of three arguments": "metaclass-of-three-arguments metaclass-mro",
        "__init_subclass__, __set_name__": "init-subclass-hands-classes set-name-hands-the-owner",
        "descriptors, __class_getitem__": "descriptor-get-hands-the-owner class-getitem-hands-the-class",
    },
    "L4": {
        "__import__, importlib": "dunder-import importlib",
        "__builtins__, sys.modules": "dunder-builtins sys-modules",
        "modules by way of granted ones": "transitive-module random-os dataclasses-sys",
        "__loader__, __spec__": "module-loader module-spec",
    },
    "L5": {
        "eval, exec, compile": "eval exec compile",
        "dataclass, namedtuple, timeit, Template": "dataclass-annotations-as-code namedtuple-field-names timeit "
        "string-template-subclass",
        "numpy and pandas": "package-that-is-not-trusted numpy-frompyfunc-getattr pandas-pipe",
        "pickle and friends": "pickle-loads marshal copy-reduce",
    },
    "L6": {
        "rebinding, shadowing": "rebind-getattr-gates rebind-by-walrus rebind-by-pattern",
        "introspection, locals(), vars()": "globals-dotted-names "
        "builtins-dict-through-vars builtins-dict-through-locals",
        "closures, defaults, exceptions": "closure-of-a-stand-in defaults-of-a-stand-in name-error-name-and-obj",
    },
    "L7": {
        "bare except, finally": "bare-except-around-loop finally-loop",
        "__exit__, __del__": "exit-swallows del-loops",
        "generators' close, weakref callbacks": "generator-close-catches weakref-callback-loops",
        "threads": "thread-outlives thread-by-executor",
    },
    "L8": {
        "an argument": "argument-list-appended argument-nested-dict",
        "a registered module's attribute": "module-attribute-set module-list-changed",
        "a shared default": "function-defaults function-kwdefaults",
        "a class attribute": "host-class-attribute class-in-module-attribute",
        "a builtin's state": "builtins-attribute random-state-of-the-host decimal-context-of-the-host",
    },
    "L9": {
        "str and int subclasses": "str-subclass-name-to-getattr int-subclass-index",
        "__eq__, __hash__, __bool__": "eq-runs-in-a-lookup hash-runs-in-a-lookup bool-that-lies",
        "__getattribute__": "getattribute-of-own-class",
        "repr, _repr_html_": "repr-reaches-the-host html-repr-reaches-the-host",
    },
    "L10": {
        "powers, shifts, repeats": "power-of-powers shift-left repeat-text",
        "ranges consumed by built-ins": "sum-of-range list-of-range",
        "int and str": "str-of-int int-of-str",
        "regex": "catastrophic-regex catastrophic-regex-sub",
        "sorting with hostile keys": "sort-with-slow-key sort-hostile-lt",
        "recursion, nesting, giant literals": "recursion-in-python recursion-in-json",
    },
    "L11": {
        "caches": "test_hints_of_the_program_are_none_of_a_cells test_zones_of_the_program_have_names_that_are_texts "
        "test_formats_that_the_program_keeps_are_texts test_flags_of_patterns_of_the_program_are_none_of_a_cells "
        "test_addresses_of_the_program_are_private_or_not_whatever_a_cell_asks",
        "abstract classes": "abc-registry abc-subclasscheck-hook abc-register-host-class",
        "warnings": "warnings-filters-of-the-host warnings-showwarning",
    },
    "L12": {
        "in hand": "test_what_no_row_knows_cannot_be_called test_what_no_row_knows_has_no_attributes",
        "inherited from": "test_what_no_row_knows_cannot_be_inherited_from",
        "a stand-in's own names": "test_no_name_of_a_stand_in_is_imported",
    },
    "W1": {
        "absolute paths, `..`": "files-absolute-path files-dotdot host-files-names-outside",
        "symlinks, before and during": "files-symlink host-files-link-to-the-secret host-files-swapped-directory",
        "hard links": "files-hard-link-to-the-system host-files-hard-link-made-inside",
        "/proc/*/root, /proc/*/fd": "files-root-of-every-process files-way-out-of-each-descriptor",
        "mount tricks": "files-mount files-new-mount-calls files-new-roots mounts-names-that-cover",
        "writing through a read-only bind": "mounts-write-in-every-way mounts-write-through-a-descriptor",
    },
    "W2": {
        "seeing": "processes-listing processes-arguments-of-others",
        "signalling": "processes-kill-by-host-pid processes-kill-everything",
        "tracing": "processes-trace processes-memory-calls processes-memory-of-init processes-kill-init-by-pidfd",
        "killing init, a checkpoint": "processes-kill-init checkpoints-killed checkpoints-killed-by-pidfd",
        "daemons left behind": "processes-daemon-after-close processes-daemon-after-crash "
        "processes-daemon-after-time-out processes-host-is-killed",
    },
    "W3": {
        "loopback services of the host": "network-tcp-of-the-host network-udp-of-the-host network-tcp6-of-the-host",
        "abstract unix sockets": "network-abstract-socket-of-the-host network-abstract-socket-of-a-neighbour",
        "raw, netlink, packet, vsock": "network-raw-sockets network-other-families",
        "DNS": "network-names test_no_name_was_asked_for_that_is_not_listed",
        "leaked descriptors": "network-inherited-descriptors door-inherited-descriptors",
        "everything not listed, by name and address": "test_what_is_listed_answers_and_nothing_else_is_reached "
        "test_special_addresses_are_nobody_s",
        "by redirect, IPv6": "test_no_service_of_the_host_was_touched_by_any_row network-outside-by-ipv6",
        "a private session's ways out": "test_a_private_session_does_not_get_out "
        "test_there_are_more_than_forty_ways_out",
    },
    "W4": {
        "capabilities": "privileges-capability-sets privileges-get-a-capability-back",
        "setuid files": "privileges-make-a-setuid-file privileges-setuid-files-of-the-system",
        "user namespaces, setns": "privileges-namespaces",
        "mounts": "files-mount privileges-every-mount-is-nosuid-and-nodev",
        "keyrings": "privileges-keys",
        "bpf, perf, io_uring, userfaultfd": "privileges-kernel-programs privileges-performance-events "
        "privileges-call-queues",
        "modules, clocks": "privileges-modules privileges-clocks",
    },
    "W5": {
        "environment": "secrecy-environment secrecy-environment-at-exec secrecy-environment-of-others",
        "command lines": "secrecy-command-lines",
        "inherited descriptors": "network-inherited-descriptors",
        "zygote memory": "secrecy-memory-of-the-worker secrecy-memory-scan-works secrecy-objects-of-the-collector",
        "other sessions' workspaces": "secrecy-files-of-a-neighbour",
        "other sessions' store rows": "test_one_users_objects_do_not_exist_for_another",
        "core dumps": "secrecy-core-dumps secrecy-raise-the-core-limit "
        "secrecy-lower-the-core-limit-to-start-the-crash-handler",
        "/dev/shm": "secrecy-shared-memory-starts-empty secrecy-shared-memory-segments-of-the-host",
    },
    "W6": {
        "memory, one process and many": "resources-one-large-object resources-memory-of-many-processes",
        "fork bombs, threads": "resources-fork-bomb resources-threads",
        "descriptors": "resources-descriptors resources-descriptors-of-single-threads",
        "disk": "resources-full-disk resources-many-small-files resources-one-large-file",
        "CPU": "resources-endless-loop resources-endless-loop-in-c",
        "output": "resources-output-of-a-gigabyte resources-output-past-the-streams resources-large-displays",
        "inotify": "resources-inotify",
    },
    "W7": {
        "forged frames on any descriptor": "protocol-forged-reply protocol-forged-on-every-descriptor",
        "oversized, truncated": "protocol-large-packet protocol-short-frame protocol-half-a-frame-then-another",
        "out of order": "protocol-second-hello protocol-reply-to-a-later-request protocol-reply-before-the-request",
        "never-ending": "protocol-endless-frame protocol-without-end-a-frame-slowly",
        "replies to calls that were not made": "protocol-reply-to-an-earlier-request",
        "two processes writing at once": "protocol-child-garbage protocol-children-flood-the-socket",
        "a worker that stops reading, SIGSTOP": "protocol-calls-without-reading-replies protocol-stops-itself",
    },
    "W8": {
        "unpickling": "shown-pickles test_no_module_of_the_host_can_unpickle",
        "HTML and SVG": "shown-scripts shown-tags-in-exports",
        "terminal sequences": "shown-terminal-escapes",
        "file names in exports, zip-slip": "shown-file-names test_names_from_inside_are_made_harmless",
        "URIs": "shown-uris",
        "log injection": "shown-errors-of-the-host",
        ".ipynb metadata": "test_jupyter_runs_what_was_exported_to_the_same_outputs",
    },
    "W9": {
        "builtins, json, pickle": "insides-each-builtin insides-json insides-each-module",
        "sys.stdout, signal handlers": "insides-stdout-raises insides-ignores-interrupts",
        "atexit, excepthook, gc callbacks": "insides-exit-handlers insides-excepthook insides-collector-callbacks",
        "import hooks, sys.path": "insides-import-hooks insides-path",
        "os._exit, segfault, stack overflow": "insides-exit-at-once insides-segmentation-fault insides-stack-overflow",
        "ulimit games": "insides-limits-lowered insides-memory-limit-lowered",
    },
    "W10": {
        "files between branches": "branches-open-directory branches-nameless-file-and-pipe test_files_go_apart",
        "state between branches": "branches-entered-by-proc test_random_streams_differ_and_can_be_told_again",
        "a future that was rolled back": "test_random_numbers_go_on_after_a_death_where_they_were "
        "test_a_new_process_of_a_private_session_is_no_way_out",
        "checkpoints attacked by the running cell": "checkpoints-traced-and-read checkpoints-claimed-by-the-worker",
    },
    "W11": {
        "turns without a bound": "test_displays_behind_a_mark_that_no_event_follows_leave_the_loop_its_turns "
        "test_host_goes_on_under_hostile_sequences_of_messages",
        "close() or read() that waits": "test_socket_that_lingers_is_closed_at_once_by_its_host",
        "what costs more than linear": "test_no_text_holds_up_the_host test_patterns_of_the_host_take_linear_time",
        "what is held and not counted": "test_arguments_of_calls_under_way_end_the_cell_past_the_limit "
        "test_outputs_of_the_oldest_cells_are_dropped_and_named "
        "test_answers_that_wait_for_a_commit_end_the_cell_past_the_limit",
        "work after its cell": "test_call_of_a_plain_function_that_has_not_begun_when_its_cell_ends_never_does",
    },
    "D1": {
        "kill at every step of a commit": "test_kill_at_every_step_loses_nothing_acknowledged_in_sqlite "
        "test_kill_at_every_step_loses_nothing_acknowledged_in_postgres",
        "kill of host, worker, zygote": "test_a_session_is_as_it_was_acknowledged_whoever_is_killed",
        "a full disk, a read-only disk": "test_disk_that_takes_no_more_costs_nothing_that_was_committed",
        "two hosts opening one session": "test_of_many_hosts_one_gets_the_session",
        "corrupted, truncated": "test_damaged_file_gives_what_was_stored_or_an_error",
        "older formats": "test_sqlite_file_of_every_format_is_read test_postgres_tables_of_every_format_are_read",
    },
    "D2": {
        "sessions, users": "test_hostile_name_is_a_name test_name_that_cannot_be_told_apart_is_refused",
        "files": "host-files-unusable-names host-files-names-outside",
        "commits": "test_what_leads_nowhere_is_an_unknown_commit",
        "objects and URLs": "test_key_that_leads_out_of_the_directory_is_refused "
        "test_what_is_no_url_of_a_store_is_refused",
    },
    "D3": {
        "another's sessions": "test_what_one_user_has_no_other_reaches",
        "blobs, by guessing a hash": "test_one_users_objects_do_not_exist_for_another",
        "missing and wrong tokens, cross-site requests, rebinding": (
            "test_a_request_without_a_token_by_another_name_or_from_a_page_is_not_answered"
        ),
        "weak tokens": "test_a_token_that_is_easily_guessed_or_cannot_be_sent_is_refused",
    },
    "D4": {
        "many sessions": "test_user_may_keep_so_many_sessions",
        "huge requests": "test_a_body_that_is_too_large_is_refused",
        "abandoned requests": "test_a_call_over_http_that_is_cancelled_interrupts_its_cell",
    },
}

UNTRIED: dict[str, dict[str, str]] = {
    "W5": {
        "swap through tmpfs": "the kernel may swap a session's files and memory to the host's disk, as any program's"
    },
    "D3": {"events and a page of another's": "there is no server with pages"},
    "D4": {"slow readers": "nothing but the MCP server streams, and that by its framework"},
}
"""What nothing tries, and why."""
