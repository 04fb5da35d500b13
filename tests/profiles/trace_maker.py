"""Writes small traces in torch's layout, event by event, for tests that derive their numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MAIN, AUTOGRAD, PROCESS = 100, 200, 100


class TraceMaker:
    """Times are microseconds. Host events are on the main thread unless `thread` says otherwise."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def host(
        self, category: str, name: str, start: float, end: float, thread: int, **args: Any
    ) -> TraceMaker:
        self.events.append(
            {
                "ph": "X", "cat": category, "name": name, "pid": PROCESS, "tid": thread,
                "ts": start, "dur": end - start, "args": args,
            }
        )  # fmt: skip
        return self

    def mark(self, line: int, start: float, end: float, thread: int = MAIN) -> TraceMaker:
        return self.host("cpu_op", f"train.py:{line}", start, end, thread)

    def op(
        self, name: str, start: float, end: float, thread: int = MAIN, **args: Any
    ) -> TraceMaker:
        spelled = {"sequence": "Sequence number", "forward_thread": "Fwd thread id"}
        return self.host(
            "cpu_op", name, start, end, thread,
            **{spelled.get(key, key): value for key, value in args.items()},
        )  # fmt: skip

    def node(self, name: str, sequence: int, start: float, end: float) -> TraceMaker:
        """A backward node on the autograd thread; torch shows it twice, one inside the other."""
        self.op(
            f"autograd::engine::evaluate_function: {name}", start, end, AUTOGRAD,
            sequence=sequence, forward_thread=1,
        )  # fmt: skip
        return self.op(name, start, end, AUTOGRAD, sequence=sequence, forward_thread=1)

    def call(
        self, name: str, start: float, end: float, correlation: int = 0, thread: int = MAIN
    ) -> TraceMaker:
        return self.host("cuda_runtime", name, start, end, thread, correlation=correlation)

    def kernel(self, start: float, end: float, correlation: int, **args: Any) -> TraceMaker:
        return self.device("kernel", "some_kernel", start, end, correlation, **args)

    def copy(
        self, start: float, end: float, correlation: int, how: str, byte_count: int = 4
    ) -> TraceMaker:
        name = f"Memcpy {how}"
        return self.device("gpu_memcpy", name, start, end, correlation, bytes=byte_count)

    def device(
        self, category: str, name: str, start: float, end: float, correlation: int, **args: Any
    ) -> TraceMaker:
        self.events.append(
            {
                "ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": start,
                "dur": end - start,
                "args": {"device": 0, "stream": 7, "correlation": correlation, **args},
            }
        )  # fmt: skip
        return self

    def launch(
        self, called: float, start: float, end: float, correlation: int, thread: int = MAIN
    ) -> TraceMaker:
        """A launch of 2 µs at `called`, and its kernel."""
        self.call("cudaLaunchKernel", called, called + 2, correlation, thread)
        return self.kernel(start, end, correlation)

    def write(self, folder: Path, name: str = "trace.json", **header: Any) -> Path:
        path = folder / name
        path.write_text(json.dumps({**header, "traceEvents": self.events}))
        return path
