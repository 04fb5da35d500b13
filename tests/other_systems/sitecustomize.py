"""Plays the system that PLAYED_SYSTEM names to rooflint's own modules, as far as this one can.

What Windows or macOS do not have is missing, `/proc` among it, and `sys.platform` and `os.name` are
theirs; Python itself, and whatever else is imported, stays on the system that it is on. Every
Python that is started with this folder in PYTHONPATH plays along.
"""

from __future__ import annotations

import builtins
import os
import pathlib
import signal
import sys
from types import ModuleType
from typing import Any

OURS = ("rooflint", "rooflint_server", "rooflint_recorder")

NOT_ON_MACOS = {
    "os": "sched_getaffinity sched_setaffinity pidfd_open memfd_create eventfd O_TMPFILE",
    "signal": "pthread_getcpuclockid SIGRTMIN SIGRTMAX SIGPOLL SIGPWR SIGSTKFLT sigtimedwait",
}
NOT_ON_WINDOWS = {
    "os": (
        "fork forkpty killpg getpgid setpgid getpgrp setpgrp getsid setsid getuid geteuid getgid"
        " getegid getgroups setuid setgid initgroups getlogin_r getloadavg uname sysconf confstr"
        " pathconf fpathconf register_at_fork sched_getaffinity sched_setaffinity sched_yield"
        " statvfs fstatvfs chown fchown lchown chroot fchdir mkfifo mknod nice pipe2 posix_spawn"
        " posix_spawnp wait wait3 wait4 waitid WNOHANG WIFEXITED WIFSIGNALED WEXITSTATUS WTERMSIG"
        " O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY O_SYNC O_DSYNC O_NOCTTY fdatasync sync"
        " sendfile pread pwrite readv writev openpty ttyname ctermid getpriority setpriority lockf"
        " memfd_create eventfd pidfd_open setxattr getxattr copy_file_range splice O_TMPFILE"
    ),
    "signal": (
        "SIGKILL SIGUSR1 SIGUSR2 SIGHUP SIGALRM SIGCHLD SIGQUIT SIGPIPE SIGSTOP SIGCONT SIGTSTP"
        " SIGTTIN SIGTTOU SIGWINCH SIGPROF SIGVTALRM SIGXCPU SIGXFSZ SIGTRAP SIGBUS SIGRTMIN"
        " SIGRTMAX pthread_kill pthread_sigmask sigwait sigwaitinfo sigtimedwait sigpending alarm"
        " pause setitimer getitimer siginterrupt ITIMER_REAL SIG_BLOCK"
    ),
    "time": "clock_gettime clock_gettime_ns clock_getres CLOCK_REALTIME CLOCK_MONOTONIC tzset",
    "socket": "AF_UNIX socketpair_unix sendmsg recvmsg SO_REUSEPORT",
}
MODULES_NOT_ON_WINDOWS = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}


class Played(ModuleType):
    """A module without some of its names, and with others."""

    def __init__(self, module: ModuleType, missing: str, **other: Any) -> None:
        super().__init__(module.__name__)
        self._module, self._missing = module, set(missing.split())
        self.__dict__.update(other)

    def __getattr__(self, name: str) -> Any:
        if name in self._missing:
            raise AttributeError(f"{os.environ['PLAYED_SYSTEM']} has no {self.__name__}.{name}")
        return getattr(self._module, name)


def play(system: str) -> None:
    windows = system == "Windows"
    missing = NOT_ON_WINDOWS if windows else NOT_ON_MACOS
    looked_up = {name: getattr(sys, name) for name in ("monitoring",) if hasattr(sys, name)}
    played: dict[str, ModuleType] = {
        "sys": Played(sys, "", platform="win32" if windows else "darwin", **looked_up),
        "os": Played(os, missing["os"], **({"name": "nt"} if windows else {})),
        "signal": Played(signal, missing["signal"]),
    }
    import_really = builtins.__import__

    def import_played(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        module = import_really(name, globals, locals, fromlist, level)
        importer = str((globals or {}).get("__name__", "")).partition(".")[0]
        if importer not in OURS or level:
            return module
        if windows and name in MODULES_NOT_ON_WINDOWS:
            raise ModuleNotFoundError(f"Windows has no {name}", name=name)
        if name in missing and name not in played:
            played[name] = Played(module, missing[name])
        return played.get(name, module)

    builtins.__import__ = import_played
    hide_proc()


def hide_proc() -> None:
    stat_really = os.stat

    def stat(path: Any, **options: Any) -> os.stat_result:
        check(path)
        return stat_really(path, **options)

    def check(path: object) -> None:
        if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith("/proc/"):
            raise FileNotFoundError(2, "this system has no /proc", os.fspath(path))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir"):
            check(arguments[0])

    os.stat = stat
    if sys.version_info < (3, 11):
        pathlib._NormalAccessor.stat = staticmethod(stat)  # type: ignore[attr-defined]
    sys.addaudithook(hook)


play(os.environ["PLAYED_SYSTEM"])
