"""W1 from inside: reaching a file of the host by path, link, mount, handle, device or another's root."""

from __future__ import annotations

from cellblock_attacks.attack import Attack, Table, one_of, subset_of

_ROOT = "the session's root holds no such path"
_READ_ONLY = "read-only mounts, and Landlock before them"
_SECCOMP = "seccomp"


_HIDDEN = "/proc hides who could not be traced, which Landlock decides"


_cell = Table("files", "W1").cell


_UNWRITABLE = one_of("EROFS", "EACCES")

ATTACKS: tuple[Attack, ...] = (
    _cell("absolute-path", _ROOT, "ENOENT", "attempt(read, facts['secret'])"),
    _cell("home-of-the-host", _ROOT, "ENOENT", "attempt(read, facts['home'])"),
    _cell("shadow", _ROOT, "ENOENT", "attempt(read, '/etc/shadow')"),
    _cell(
        "accounts-are-the-sessions-own",
        _ROOT,
        ["user", "nobody"],
        """
[line.split(":")[0] for line in read("/etc/passwd").splitlines()]
""",
    ),
    _cell(
        "listing-the-hosts-places",
        _ROOT,
        ["ENOENT"],
        """
sorted({attempt(os.listdir, place) for place in ("/var/log", "/run", "/sys", "/boot", "/mnt", "/srv", facts["folder"])})
""",
    ),
    _cell(
        "dotdot",
        _ROOT,
        ["ENOENT"],
        """
sorted({attempt(read, "../" * depth + facts["secret"].lstrip("/")) for depth in range(1, 30)})
""",
    ),
    _cell(
        "symlink",
        _ROOT,
        "ENOENT",
        """
if os.path.lexists("link"): os.unlink("link")
os.symlink(facts["secret"], "link")
attempt(read, "link")
""",
    ),
    _cell(
        "symlink-through-proc",
        _ROOT,
        ["ENOENT"],
        """
found = set()
for way in ("/proc/self/root", "/proc/self/cwd/../..", "/proc/thread-self/root",
    "/proc/self/task/%d/root" % os.getpid()):
    if os.path.lexists("link"): os.unlink("link")
    os.symlink(way + facts["secret"], "link")
    found.add(attempt(read, "link"))
sorted(found)
""",
    ),
    _cell(
        "root-of-every-process",
        "Landlock (EACCES), else the same root",
        subset_of("EACCES", "ENOENT"),
        """
sorted({attempt(read, f"/proc/{pid}/root{facts['secret']}") for pid in pids()})
""",
    ),
    _cell("root-of-init", _HIDDEN, "ENOENT", "attempt(os.listdir, '/proc/1/root')"),
    _cell("directory-of-init", _HIDDEN, "ENOENT", "attempt(os.listdir, '/proc/1/cwd')"),
    _cell("descriptors-of-init", _HIDDEN, "ENOENT", "attempt(os.listdir, '/proc/1/fd')"),
    _cell(
        "way-out-of-each-descriptor",
        "no descriptor is a directory",
        subset_of("ENOTDIR", "ENOENT"),
        """
here = os.listdir("/proc/self/fd")
sorted({attempt(read, f"/proc/self/fd/{number}/../../../..{facts['secret']}") for number in here})
""",
    ),
    _cell(
        "hard-link-to-the-system",
        "links do not cross mounts",
        "EXDEV",
        """
attempt(os.link, "/etc/passwd", "linked")
""",
    ),
    _cell(
        "hard-link-by-descriptor",
        "linkat by descriptor takes CAP_DAC_READ_SEARCH",
        one_of("ENOENT", "EXDEV"),
        """
number = os.open("/etc/passwd", os.O_PATH)
call("linkat", number, b"", -100, b"linked", 0x1000)
""",
    ),
    _cell(
        "rename-out-of-the-system",
        "renames do not cross mounts",
        one_of("EXDEV", "EROFS", "EACCES"),
        """
attempt(os.rename, "/etc/passwd", "moved")
""",
    ),
    _cell(
        "create-in-each-directory-of-the-system",
        _READ_ONLY,
        subset_of("EROFS", "EACCES"),
        """
import sysconfig
places = ["/", "/etc", "/usr", "/usr/bin", "/dev", "/bin", sysconfig.get_paths()["stdlib"],
          sysconfig.get_paths()["purelib"]]
sorted({attempt(open, place + "/planted", "w") for place in places if os.path.isdir(place)})
""",
    ),
    _cell(
        "change-what-holds-the-workspace",
        "Landlock: only the directories in it are the session's to write",
        ["EACCES"],
        """
kept = [f"/session/{name}" for name in ("workspace", "tmp", "shm")]
found = {attempt(open, "/session/planted", "w"), attempt(os.mkdir, "/session/planted"),
         attempt(os.symlink, "/etc", "/session/planted"), attempt(os.rename, "kept_file", "/session/planted")}
for one in kept: found |= {attempt(os.rename, one, "/session/moved"), attempt(os.rmdir, one)}
sorted(found)
""",
    ),
    _cell(
        "writable-devices",
        "Landlock: /dev/full and /dev/null alone; /dev/zero mapped shared is memory that no limit counts",
        ["EACCES"],
        """
sorted({attempt(os.open, "/dev/" + name, os.O_RDWR) for name in ("zero", "random", "urandom")})
""",
    ),
    _cell(
        "change-the-standard-library",
        _READ_ONLY,
        subset_of("EROFS", "EACCES"),
        """
sorted({attempt(open, os.__file__, "a"), attempt(os.truncate, os.__file__, 0), attempt(os.unlink, os.__file__),
        attempt(os.chmod, os.__file__, 0o777), attempt(os.utime, os.__file__)})
""",
    ),
    _cell(
        "change-the-library-itself",
        _READ_ONLY,
        subset_of("EROFS", "EACCES"),
        """
import cellblock
sorted({attempt(open, cellblock.__file__, "r+"), attempt(os.rename, cellblock.__file__, cellblock.__file__ + "x")})
""",
    ),
    _cell(
        "write-the-running-interpreter",
        _READ_ONLY,
        one_of("EROFS", "EACCES", "ETXTBSY"),
        """
attempt(open, "/proc/self/exe", "r+b")
""",
    ),
    _cell("unnamed-file-in-the-system", _READ_ONLY, _UNWRITABLE, "attempt(os.open, '/usr', os.O_TMPFILE | os.O_RDWR)"),
    _cell(
        "device-nodes",
        _SECCOMP,
        ["EPERM"],
        """
import stat
sorted({attempt(os.mknod, "device", kind | 0o666, os.makedev(*number))
        for kind in (stat.S_IFCHR, stat.S_IFBLK) for number in ((1, 1), (1, 3), (8, 0), (254, 0))})
""",
    ),
    _cell(
        "devices-of-the-host",
        _ROOT,
        ["ENOENT"],
        """
sorted({attempt(read, "/dev/" + name) for name in ("mem", "kmem", "port", "kmsg", "sda", "vda", "kvm", "fuse",
    "tty", "ptmx")})
""",
    ),
    _cell(
        "devices-of-the-session",
        "the root holds five devices",
        ["full", "null", "random", "urandom", "zero"],
        """
import stat
sorted(name for name in os.listdir("/dev") if stat.S_ISCHR(os.lstat("/dev/" + name).st_mode))
""",
    ),
    _cell(
        "mount",
        _SECCOMP,
        ["EPERM"],
        """
sorted({call("mount", b"tmpfs", b"/workspace", b"tmpfs", 0, None), call("mount", b"/", b"/workspace", None,
    0x1000, None),
        call("mount", None, b"/usr", None, 0x20 | 0x1000, None), call("mount", b"proc", b"/workspace", b"proc",
            0, None)})
""",
    ),
    _cell(
        "new-mount-calls",
        _SECCOMP,
        ["EPERM"],
        """
sorted({call("open_tree", -100, b"/", 1), call("move_mount", -100, b"/usr", -100, b"/workspace", 0),
        call("fsopen", b"tmpfs", 0), call("fsmount", 0, 0, 0), call("fspick", -100, b"/", 0), call("fsconfig",
            0, 0, None, None, 0),
        call("mount_setattr", -100, b"/", 0x8000, bytes(32), 32), call("umount2", b"/proc", 2)})
""",
    ),
    _cell(
        "new-roots",
        _SECCOMP,
        ["EPERM"],
        """
sorted({call("chroot", b"/workspace"), call("pivot_root", b"/workspace", b"/workspace")})
""",
    ),
    _cell(
        "file-handles",
        _SECCOMP,
        ["EPERM"],
        """
handle = ctypes.create_string_buffer(136)
sorted({call("name_to_handle_at", -100, b"/etc/passwd", handle, handle, 0), call("open_by_handle_at", -100, handle, 0)})
""",
    ),
    _cell(
        "kernel-settings",
        "owned by a root that does not exist in here",
        subset_of("EACCES", "EPERM", "ENOENT", "EROFS"),
        """
names = ("kernel/core_pattern", "kernel/modprobe", "kernel/hostname", "vm/overcommit_memory", "vm/drop_caches",
         "kernel/sysrq", "kernel/randomize_va_space", "net/ipv4/ip_forward", "fs/suid_dumpable", "kernel/ns_last_pid",
         "user/max_user_namespaces", "kernel/msgmax")
def set_to_1(name):
    with open("/proc/sys/" + name, "w") as file:
        file.write("1")
    return "written " + name
sorted({attempt(set_to_1, name) for name in names})
""",
    ),
    _cell(
        "kernel-memory-and-triggers",
        "owned by a root that does not exist in here",
        subset_of("EACCES", "EPERM", "ENOENT", "EROFS"),
        """
sorted({attempt(open, "/proc/" + name, mode) for name, mode in
        (("kcore", "rb"), ("kmsg", "rb"), ("sysrq-trigger", "w"), ("timer_list", "rb"), ("kpageflags", "rb"),
            ("mtrr", "w"), ("slabinfo", "rb"))})
""",
    ),
    _cell(
        "remap-own-user",
        "the user namespace: an identity is written once",
        subset_of("EPERM", "EACCES"),
        """
def write(name):
    with open("/proc/self/" + name, "w") as file:
        file.write("deny" if name == "setgroups" else "0 0 1")
sorted({attempt(write, "uid_map"), attempt(write, "gid_map")})
""",
    ),
    _cell("executable-of-init", _HIDDEN, "ENOENT", "attempt(os.readlink, '/proc/1/exe')"),
    _cell("openat2", "seccomp: arguments behind a pointer", "ENOSYS", "call('openat2', -100, b'/', bytes(24), 24)"),
)
