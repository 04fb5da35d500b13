"""Which operations make the host wait for the GPU, measured on the GPU of this machine.

    python -m rooflint.tables.waits tests/measured          every list
    python -m rooflint.tables.waits tests/measured copies   one list

A kernel that spins is queued, the operation is run, and the host's clock tells whether it came back
before the kernel was done. Every `*.txt` of the folder is a list of operations; with them go the
operations that `samples` makes. Each list is measured in processes of its own, because what one
library does to torch (turning checks off, say) must not reach another, and a process that an
operation kills is started again behind it. The results go into the folder, one file a list.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from rooflint.tables import waiting
from rooflint.tables.programs import Program, read_programs
from rooflint.tables.samples import samples, sources

LEAST_SPIN_S = 8e-3
WAITED_SHARE = 0.6
"""An operation that took this much of the spin has waited for it."""
CLEAR_SHARE = 0.3
"""Between this and `WAITED_SHARE` it is measured again, behind a longer spin."""
MOST_QUIET_S = 60.0
"""How long a process may say nothing before it is ended and started again behind what hangs."""


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--child"]:
        _measure_list(arguments[1], int(arguments[2]), Path(arguments[3]))
        return 0
    if not arguments:
        print("usage: python -m rooflint.tables.waits FOLDER [LIST ...]", file=sys.stderr)
        return 2
    try:
        torch: Any = importlib.import_module("torch")
        tables = sources()
    except ImportError as e:
        print(f"rooflint: {e}; measuring needs torch and expecttest.", file=sys.stderr)
        return 1
    if not torch.cuda.is_available():
        print("rooflint: no GPU is here to measure on.", file=sys.stderr)
        return 1
    folder = Path(arguments[0])
    about = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}
    lists = {path.stem: str(path) for path in sorted(folder.glob("*.txt"))}
    lists |= {f"sampled_{name}": name for name in tables}
    unknown = [stem for stem in arguments[1:] if stem not in lists]
    if unknown:
        print(f"rooflint: {folder} has no list {unknown[0]}.txt.", file=sys.stderr)
        return 2
    for stem in arguments[1:] or lists:
        _measure_in_processes(lists[stem], folder / f"{stem}.json", about)
    return waiting.main([str(folder)])


def _measure_in_processes(name: str, result: Path, about: dict[str, str]) -> None:
    """Run one list, each process up to the operation that kills it."""
    lines = result.with_suffix(".part")
    lines.write_text("")
    start, began = 0, time.monotonic()
    while True:
        child = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "rooflint.tables.waits",
                "--child",
                name,
                str(start),
                str(lines),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        size, since = lines.stat().st_size, time.monotonic()
        while child.poll() is None:
            time.sleep(0.2)
            if lines.stat().st_size != size:
                size, since = lines.stat().st_size, time.monotonic()
            elif time.monotonic() - since > MOST_QUIET_S:
                child.kill()
        tail = child.stderr.read().decode(errors="replace").strip()[-200:] if child.stderr else ""
        if child.returncode == 0:
            break
        begun = [r["begin"] for r in _records(lines) if "begin" in r]
        if not begun or begun[-1] < start:
            _append(lines, {"skipped": name, "why": tail})
            break
        _append(lines, {"skipped": begun[-1], "why": tail.rpartition("\n")[2]})
        start = begun[-1] + 1
    _write(result, lines, about)
    lines.unlink()
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


def _records(lines: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.read_text("utf-8").splitlines()]


def _append(lines: Path, record: dict[str, Any]) -> None:
    with lines.open("a", encoding="utf-8") as out:
        out.write(json.dumps(record) + "\n")


def _write(result: Path, lines: Path, about: dict[str, str]) -> None:
    """One operation a line, so that a change of torch shows as a change of lines."""
    records = _records(lines)
    rows: list[tuple[str, dict[str, bool]]] = []
    for setup, operation, waited in (r["row"] for r in records if "row" in r):
        if not rows or rows[-1][0] != setup:
            rows.append((setup, {}))
        rows[-1][1][operation] = waited
    measured = ",\n".join(
        f"[{json.dumps(setup)}, {{\n{_lines(operations)}\n}}]" for setup, operations in rows
    )
    skipped = {str(r["skipped"]): r["why"] for r in records if "skipped" in r}
    head = json.dumps(about)[1:-1]
    text = f'{{{head},\n"rows": [\n{measured}\n],\n"skipped": {{\n{_lines(skipped)}\n}}}}\n'
    result.write_text(text, "utf-8")


def _lines(pairs: Mapping[str, object]) -> str:
    return ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in pairs.items())


def _measure_list(name: str, start: int, lines: Path) -> None:
    """In a process of its own: measure a list from one of its entries on."""
    torch: Any = importlib.import_module("torch")
    device = torch.device("cuda")
    spinner = _Spinner(torch)
    for index, programs in _entries(name, start):
        _append(lines, {"begin": index})
        try:
            for program, names in programs:
                row = _measured(torch, device, spinner, program, names)
                _append(lines, {"row": row} if isinstance(row, list) else row)
        except Exception as e:
            _append(lines, {"skipped": index, "why": _why(e)})
        # What the operation broke in the GPU's context ends this process, not the next operation.
        torch.cuda.synchronize()


def _entries(name: str, start: int) -> Iterator[tuple[int, Iterator[tuple[Program, Any]]]]:
    if name.endswith(".txt"):
        for index, program in enumerate(read_programs(Path(name))):
            if index >= start:
                yield index, iter([(program, None)])
        return
    for index in range(start, sources()[name]):
        yield index, ((s.program, s.names) for s in samples(name, index, "cuda"))


def _measured(
    torch: Any, device: Any, spinner: _Spinner, program: Program, names: dict[str, Any] | None
) -> list[Any] | dict[str, Any]:
    """Set-up, operation, whether it waited; or why that could not be measured."""
    torch.manual_seed(0)
    scope: dict[str, Any] = {"torch": torch, "d": device, **(names or {})}
    try:
        with _quiet():
            for line in [program.setup] if names is None else program.setup.splitlines():
                if names is None or line.partition(" = ")[0] not in names:
                    exec(line, scope)
        operation = compile(program.operation, "<operation>", "exec")
        prepare = compile(program.prepare, "<preparation>", "exec")
        took, spin = spinner.time_of(lambda: exec(operation, scope), lambda: exec(prepare, scope))
    except Exception as e:
        return {"skipped": program.key, "why": _why(e)}
    # The set-up of a list stands in the list.
    return ["" if names is None else program.setup, program.key, took > WAITED_SHARE * spin]


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:160]


class _Spinner:
    """Keeps the GPU busy for a wanted time."""

    def __init__(self, torch: Any):
        self.torch = torch
        cycles = 100_000_000
        for _ in range(2):
            torch.cuda.synchronize()
            began = time.perf_counter()
            torch.cuda._sleep(cycles)
            torch.cuda.synchronize()
            took = time.perf_counter() - began
        self.cycles_per_s = cycles / took  # pyright: ignore

    def time_of(self, run: Callable[[], Any], prepare: Callable[[], Any]) -> tuple[float, float]:
        """The host's time for an operation behind a spin, and the spin's."""
        synchronize = self.torch.cuda.synchronize
        gc.disable()
        try:
            with _quiet():
                for _ in range(2):
                    prepare()
                    run()
                prepare()
                synchronize()
                alone = _time(run)
                spin = max(LEAST_SPIN_S, 4 * alone)
                took = self._behind(spin, run, prepare)
                if CLEAR_SHARE * spin < took < WAITED_SHARE * 1.5 * spin:
                    spin = max(10 * LEAST_SPIN_S, 10 * alone)
                    took = self._behind(spin, run, prepare)
            return took, spin
        finally:
            gc.enable()
            gc.collect(0)

    def _behind(self, spin: float, run: Callable[[], Any], prepare: Callable[[], Any]) -> float:
        prepare()
        self.torch.cuda.synchronize()
        self.torch.cuda._sleep(int(spin * self.cycles_per_s))
        took = _time(run)
        self.torch.cuda.synchronize()
        return took


def _time(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    out, err = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    with warnings.catch_warnings(), out, err:
        warnings.simplefilter("ignore")
        yield


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
