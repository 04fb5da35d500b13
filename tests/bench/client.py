"""The other end of a language server: sends messages, and notes when each answer came."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from .timing import environment

PATIENCE_S = 120
CAPABILITIES = {
    "workspace": {"configuration": True, "workspaceFolders": True},
    "textDocument": {
        "synchronization": {"didSave": True},
        "hover": {"contentFormat": ["markdown"]},
        "publishDiagnostics": {"relatedInformation": True, "versionSupport": True},
    },
    "general": {"positionEncodings": ["utf-16"]},
}


class Client:
    """One server with one folder open."""

    def __init__(self, command: Sequence[str], root: Path):
        self._process = subprocess.Popen(
            command,
            cwd=root,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._inbox: queue.Queue[tuple[float, dict[str, Any]]] = queue.Queue()
        self._ids = 0
        threading.Thread(target=self._read, daemon=True).start()
        folder = {"uri": root.as_uri(), "name": root.name}
        self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": root.as_uri(),
                "workspaceFolders": [folder],
                "capabilities": CAPABILITIES,
            },
        )
        self.start_ms = self._cpu_ms()
        """CPU time until it had answered."""
        self.notify("initialized", {})

    def notify(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: object) -> float:
        """Ask, and wait for the answer; the milliseconds that it took."""
        self._ids += 1
        sent = time.perf_counter()
        self._send({"id": self._ids, "method": method, "params": params})
        came = self._await(lambda message: message.get("id") == self._ids)
        return (came - sent) * 1e3

    def change(self, uri: str, version: int, line: int, old: str, new: str) -> None:
        """Put another text in place of a line's."""
        place = {
            "start": {"line": line, "character": 0},
            "end": {"line": line, "character": len(old)},
        }
        document = {"uri": uri, "version": version}
        changes = [{"range": place, "text": new}]
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def open(self, uri: str, text: str) -> None:
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def told(self, uri: str, words: str = "") -> float:
        """Wait for diagnostics of a file that hold these words; when they came."""

        def holds(message: dict[str, Any]) -> bool:
            params = message.get("params") or {}
            if message.get("method") != "textDocument/publishDiagnostics" or params["uri"] != uri:
                return False
            return not words or any(words in d["message"] for d in params["diagnostics"])

        return self._await(holds)

    def told_all(self, uris: Iterable[str]) -> None:
        """Wait for diagnostics of all these files, in whatever order they come."""
        missing = {*uris}

        def is_last(message: dict[str, Any]) -> bool:
            if message.get("method") == "textDocument/publishDiagnostics":
                missing.discard(message["params"]["uri"])
            return not missing

        self._await(is_last)

    @property
    def memory_mib(self) -> float:
        """Resident, of the process alone."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def _cpu_ms(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1e3

    def close(self) -> None:
        self.request("shutdown", None)
        self.notify("exit", None)
        self._process.wait(PATIENCE_S)

    def _send(self, message: dict[str, object]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._process.stdin.flush()

    def _await(self, is_it: Callable[[dict[str, Any]], bool]) -> float:
        end = time.perf_counter() + PATIENCE_S
        while True:
            came, message = self._inbox.get(timeout=max(0.0, end - time.perf_counter()))
            if "method" in message and "id" in message:  # The server asks: it is told nothing.
                asked = (message.get("params") or {}).get("items")
                self._send({"id": message["id"], "result": [None] * len(asked) if asked else None})
            elif is_it(message):
                return came

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream
        while header := stream.readline():
            length = 0
            while header.strip():
                name, _, value = header.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
                header = stream.readline()
            body = stream.read(length)
            self._inbox.put((time.perf_counter(), json.loads(body)))
