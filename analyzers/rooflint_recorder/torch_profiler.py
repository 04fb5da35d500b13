"""torch's profiler, started and stopped without being seen by the script.

The layer below `torch.profiler.profile` is used: it makes no Python object of each event.
"""

# pyright: reportPrivateUsage=false, reportPrivateImportUsage=false
# The layer below torch's public profiler has underscores throughout.

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any


class TorchProfiler:
    """One profiler of the process; only one can run at a time."""

    def __init__(self) -> None:
        import torch
        from torch.autograd import profiler

        self._torch = torch
        self._module: Any = profiler
        self._prepare = profiler._prepare_profiler  # type: ignore[attr-defined]
        self._enable = profiler._enable_profiler  # type: ignore[attr-defined]
        self._disable = profiler._disable_profiler  # type: ignore[attr-defined]
        # Some scripts put their own functions in the place of these, later.
        self.make_range: Any = profiler.record_function
        self.synchronise: Callable[[], None] = torch.cuda.synchronize
        self.running = self.was_started = False
        self.sees_all_threads = _sees_all_threads()
        """Whether it may also be started on one thread and stopped on another."""

    def make_way(self, before_others: Callable[[], None], after_others: Callable[[], None]) -> None:
        """Call these before the script starts a profiler of its own, and once it has stopped.

        torch has room for one only; the script's wins.
        """

        def prepare(*arguments: Any, **options: Any) -> Any:
            before_others()
            return self._prepare(*arguments, **options)

        def enable(*arguments: Any, **options: Any) -> Any:
            before_others()
            return self._enable(*arguments, **options)

        def disable() -> Any:
            result = self._disable()
            after_others()
            return result

        self._module._prepare_profiler = prepare
        self._module._enable_profiler = enable
        self._module._disable_profiler = disable

    def close_way(self) -> None:
        """Undo `make_way`."""
        self._module._prepare_profiler = self._prepare
        self._module._enable_profiler = self._enable
        self._module._disable_profiler = self._disable

    def start(self, cuda: bool) -> None:
        from torch._C._profiler import ProfilerActivity

        activities = {ProfilerActivity.CPU}
        if cuda and ProfilerActivity.CUDA in self._torch.autograd._supported_activities():
            activities.add(ProfilerActivity.CUDA)
        config = _config()
        self.was_started = True
        with _without_chatter():
            self._prepare(config, activities)
            self._enable(config, activities)
        self._tell_torch("_run_on_profiler_start")
        self.running = True

    def stop(self) -> Any:
        """What was recorded, to be saved or dropped."""
        self.running = False
        self._tell_torch("_run_on_profiler_stop")
        with _without_chatter():
            return self._disable()

    def ignore_this_thread(self) -> None:
        """Record nothing here, if it runs: it is a forked copy, and nobody reads what it keeps."""
        if not self.running:
            return
        autograd: Any = vars(self._torch._C)["_autograd"]
        autograd._enable_record_function(False)

    def _tell_torch(self, name: str) -> None:
        """Inductor names its kernels only while it knows of a profiler."""
        tell = getattr(self._module, name, None)
        if tell is not None:
            tell()


def save(result: Any, path: str) -> None:
    """Write Chrome's trace format, gzipped; `path` is whole or not there."""
    import gzip
    import shutil

    plain, packed = path + ".part.json", path + ".part"
    try:
        with _without_chatter():
            result.save(plain)
        _check_whole(plain)
        with open(plain, "rb") as source, gzip.open(packed, "wb", compresslevel=3) as target:
            shutil.copyfileobj(source, target, 1 << 20)
        os.replace(packed, path)
    finally:
        for part in (plain, packed):
            with contextlib.suppress(OSError):
                os.unlink(part)


def _check_whole(path: str) -> None:
    """Raises `OSError` where the disk was full: torch writes as much as there is room for, or
    nothing, and tells of no error."""
    is_whole = False
    with contextlib.suppress(FileNotFoundError), open(path, "r+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 64))
        is_whole = file.read().rstrip().endswith(b"}")
        file.write(b"\n" * _BLOCK_BYTES)
    if not is_whole:
        raise OSError("torch could not write all of it, is the disk full?")


_BLOCK_BYTES = 1 << 12
"""A disk without room for one more block may have been too small for what came before."""


def _sees_all_threads() -> bool:
    from torch._C._profiler import _ExperimentalConfig

    try:
        _ExperimentalConfig(profile_all_threads=True)
    except TypeError:  # before torch 2.6
        return False
    return True


def _config() -> Any:
    from torch._C._profiler import ProfilerConfig, ProfilerState, _ExperimentalConfig

    experimental = _ExperimentalConfig()
    for options in _EXPERIMENTAL:
        with contextlib.suppress(TypeError):
            experimental = _ExperimentalConfig(**options)
            break
    arguments = (ProfilerState.KINETO, True, False, False, False, False, experimental)
    try:
        return ProfilerConfig(*arguments)
    except TypeError:  # from torch 2.6 on it has a name
        return ProfilerConfig(*arguments, "")


_EXPERIMENTAL: tuple[dict[str, Any], ...] = (
    # Sync events tell which stream and event the host waited for.
    {"profile_all_threads": True, "enable_cuda_sync_events": True},
    # Before torch 2.6: the thread that starts the profiler, and autograd's.
    {"enable_cuda_sync_events": True},
)

_CHATTER = re.compile(
    rb"^(?:(?:USDT|STAGE|INFO|WARNING|ERROR):\d{4}-\d\d-\d\d [^\n]*\.cpp:\d+\]"
    rb"|\[W\d{4} [\d:.]+ collection\.cpp:\d+\] Warning: )[^\n]*\n",
    re.M,
)


@contextlib.contextmanager
def _without_chatter() -> Generator[None, None, None]:
    """Keep the profiler's own log lines out of the script's stderr; all else goes through."""
    with contextlib.suppress(Exception):  # the script may have closed it, or taken it away
        sys.stderr.flush()
    try:
        original = os.dup(2)
        catch = tempfile.TemporaryFile()  # noqa: SIM115 (closed below)
    except OSError:
        yield
        return
    os.dup2(catch.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)
        catch.seek(0)
        rest = _CHATTER.sub(b"", catch.read())
        catch.close()
        if rest:
            with contextlib.suppress(OSError):
                os.write(2, rest)
