"""An editor that can send anything, at any time, and waits for no answer it does not want."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Queue
from typing import Any, BinaryIO

SERVER = [sys.executable, "-m", "rooflint", "server"]

MARKDOWN = {"textDocument": {"hover": {"contentFormat": ["markdown"]}}}


class RawEditor:
    """A server's process, and the two ends of its pipe."""

    def __init__(self, command: Sequence[str] = SERVER, stderr: BinaryIO | None = None):
        self._command, self._stderr = command, stderr
        self.told: list[dict[str, Any]] = []
        """What the server said by itself, in order."""
        self._arrived: Queue[dict[str, Any] | None] = Queue()
        self._number = 1000

    def __enter__(self):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=self._stderr)
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.wait()

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def write(self, body: bytes) -> None:
        self.write_raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def write_raw(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self, seconds: float = 120) -> dict[str, Any]:
        """The next message, whatever it is."""
        message = self._arrived.get(timeout=seconds)
        assert message is not None, f"the server ended with {self.process.wait()}"
        return message

    def tell(self, method: str, **params: Any) -> None:
        self.send(method=method, params=params)

    def ask(self, method: str, **params: Any) -> Any:
        """The answer to a request, or its error."""
        self._number += 1
        self.send(id=self._number, method=method, params=params)
        while True:
            message = self.receive()
            if message.get("id") == self._number and "method" not in message:
                return message.get("result", message.get("error"))
            self.told.append(message)
            if "id" in message and "method" in message:
                self.send(id=message["id"], result=None)

    def begin(self, folder: Path | None = None, **params: Any) -> Any:
        uri = folder.as_uri() if folder else None
        folders = [{"uri": uri, "name": "folder"}] if uri else None
        begun = {"processId": None, "capabilities": MARKDOWN, "workspaceFolders": folders}
        return self.ask("initialize", **{**begun, **params})

    def open(self, uri: str, text: str) -> None:
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=item)

    def rewrite(self, uri: str, text: str) -> None:
        identifier = {"uri": uri, "version": 2}
        self.tell(
            "textDocument/didChange", textDocument=identifier, contentChanges=[{"text": text}]
        )

    def hover(self, uri: str, line: int, character: int = 18) -> str:
        """The card at a place; empty: there is none."""
        place = {"line": line, "character": character}
        answer = self.ask("textDocument/hover", textDocument={"uri": uri}, position=place)
        return answer["contents"]["value"] if answer else ""

    def execute(self, command: str, *arguments: Any) -> Any:
        return self.ask(
            "workspace/executeCommand",
            command=f"rooflint.server.{command}",
            arguments=list(arguments),
        )

    def logged(self) -> list[str]:
        """What went wrong, as the server's log has it."""
        return [
            message["params"]["message"]
            for message in self.told
            if message.get("method") == "window/logMessage"
        ]

    def leave(self) -> int:
        """Shut the server down; its exit code."""
        assert self.ask("shutdown") is None
        self.tell("exit")
        return self.process.wait(60)

    def _listen(self) -> None:
        assert self.process.stdout
        with os.fdopen(os.dup(self.process.stdout.fileno()), "rb") as stream:
            while header := stream.readline():
                length = int(header.partition(b":")[2])
                while stream.readline().strip():
                    pass
                self._arrived.put(json.loads(stream.read(length)))
        self._arrived.put(None)
