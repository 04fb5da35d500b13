"""Feeds rooflint what nobody would write, for as long as one likes.

    python tests/fuzz.py --minutes 30                     all kinds in turn
    python tests/fuzz.py --minutes 30 --what trace        one kind
    python tests/fuzz.py --what trace --seed 4711         one case again, in this process

Each case is made from its kind and seed alone. It fails if it raises, if it ends the process, if
it takes longer than its size allows, or more memory than a process of an editor's may; then its
command is printed, and others go on. The exit code says whether any failed.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("analyzers", "server")]

from fuzzing import KINDS, promises  # noqa: E402

HANG_S = 120.0
"""Of silence. A machine that does other work as well may need many times what is allowed."""
MOST_MIB = 1_500
CASES_A_PROCESS = 500
WARM_UP_CASES = {"source": 20, "trace": 5, "ncu": 5, "meta": 5, "editor": 0}
"""Enough to have been everywhere; an editor's server is a process of its own."""


def main() -> int:
    options = _options()
    kinds = [options.what] if options.what else list(KINDS)
    _warm_up(kinds)
    if options.seed is not None:
        for kind in kinds:
            run_case(kind, options.seed)
        return 0
    end = time.monotonic() + 60 * options.minutes
    counts: Counter[str] = Counter()
    failed: list[str] = []
    while time.monotonic() < end:
        for kind in kinds:
            first = options.first + counts[kind]
            done, problem = _run_some(kind, first, min(end, time.monotonic() + 60))
            counts[kind] += done
            if problem:
                failed.append(f"python tests/fuzz.py --what {kind} --seed {first + done - 1}")
                print(f"{problem}\n{failed[-1]}\n", flush=True)
    print(", ".join(f"{count} cases of {kind}" for kind, count in counts.items()), flush=True)
    print(f"{len(failed)} failed", *failed, sep="\n", flush=True)
    return 1 if failed else 0


def run_case(kind: str, seed: int) -> None:
    """One case, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="rooflint-fuzz-") as folder:
        KINDS[kind](Random(f"{kind} {seed}"), Path(folder))


def _warm_up(kinds: list[str]) -> None:
    """What is imported and read once is there for all processes, and no case's own time."""
    promises.patience = math.inf
    for kind in kinds:
        for seed in range(WARM_UP_CASES[kind]):
            run_case(kind, seed)
    promises.patience = 1.0


def _run_some(kind: str, first: int, end: float) -> tuple[int, str]:
    """Cases from a seed on in a process of their own; how many began, and what went wrong."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        os.setpgid(0, 0)  # What it starts ends with it, or the pipe would never.
        os._exit(_work(kind, first, end, writer))
    os.close(writer)
    begun, text = 0, b""
    hangs = False
    while True:
        ready, _, _ = select.select([reader], [], [], HANG_S)
        if not ready:
            hangs = True
            os.kill(child, signal.SIGABRT)
            time.sleep(1)
            _end_all(child)
        data = os.read(reader, 65536)
        if not data:
            break
        begun += data.count(b"\x00")
        text += data.replace(b"\x00", b"")
    os.close(reader)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if hangs:
        return begun, f"silent for {HANG_S:.0f} s\n{text.decode()}"
    return begun, "" if code == 0 else text.decode() or f"the process ended with {code}"


def _end_all(child: int) -> None:
    """End a worker and whatever it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _work(kind: str, first: int, end: float, writer: int) -> int:
    import faulthandler
    import resource

    faulthandler.enable()
    most = MOST_MIB << 20
    resource.setrlimit(resource.RLIMIT_AS, (4 * most, 4 * most))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(first, first + CASES_A_PROCESS):
        if time.monotonic() >= end:
            return 0
        os.write(writer, b"\x00")
        try:
            run_case(kind, seed)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert peak - before < MOST_MIB << 10, f"{(peak - before) >> 10} MiB"
        except BaseException:
            os.write(writer, traceback.format_exc()[-4_000:].encode("utf-8", "replace"))
            return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--what", choices=tuple(KINDS))
    parser.add_argument("--seed", type=int, help="run this case alone")
    parser.add_argument("--first", type=int, default=0, help="the seed to begin with")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
