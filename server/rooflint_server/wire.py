"""How messages come in: all that have arrived are taken before any work is done on them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, cast

from lsprotocol.types import EXIT, INITIALIZE, ResponseError
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import RPCMessage

from rooflint.faults import place_of
from rooflint.model import RooflintError

log = logging.getLogger("rooflint.server")


async def converse(protocol: Protocol, reader: BinaryIO, work: Callable[[], None]) -> None:
    """Handle messages until the editor goes; when none wait, `work` begins what is left to do.

    A thread reads ahead, so a burst of edits is applied whole, and only its outcome is analysed.
    """
    inbox: deque[bytes | None] = deque()
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()

    def arrive(body: bytes | None) -> None:
        inbox.append(body)
        with contextlib.suppress(RuntimeError):  # The loop may have ended before us.
            loop.call_soon_threadsafe(arrived.set)

    def listen() -> None:
        try:
            for body in _bodies(reader):
                arrive(body)
        except (OSError, ValueError, OverflowError, MemoryError):
            pass  # An editor that breaks off, or sends what is no message, has gone.
        finally:
            arrive(None)

    protocol.wake = arrived.set
    protocol.waiting = inbox
    threading.Thread(target=listen, name="rooflint-listen", daemon=True).start()
    while True:
        await arrived.wait()
        arrived.clear()
        while inbox:
            body = inbox.popleft()
            if body is None:
                return
            protocol.receive(body)
        await asyncio.sleep(0)  # Requests that were begun above are answered in here.
        if not inbox:
            work()


class Protocol(LanguageServerProtocol):
    """pygls's, told when to work and proof against messages of another shape."""

    wake: Callable[[], None] = staticmethod(lambda: None)
    """Has `work` called soon."""
    waiting: Sequence[bytes | None] = ()
    """Messages that have arrived and were not taken yet."""
    _begun = False
    """The editor has said what it can do; before that it may ask for nothing."""

    def take_over(self, method: str, handler: Callable[[Any], Any]) -> None:
        """Have a handler of ours in place of pygls's own."""
        self.fm.add_builtin_feature(method, handler)  # pyright: ignore[reportUnknownMemberType]

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification that is JSON already."""
        self._send_data({"jsonrpc": self.VERSION, "method": method, "params": params})

    def _send_response(
        self, msg_id: str | int, result: Any = None, error: ResponseError | None = None
    ) -> None:
        """Answer a request; an answer that is JSON already is sent as it is."""
        if error is None and isinstance(result, dict):
            self._result_types.pop(msg_id, None)
            self._send_data({"jsonrpc": self.VERSION, "id": msg_id, "result": result})
        else:
            super()._send_response(msg_id, result, error)

    def prepare(self, *methods: str) -> None:
        """Have ready what reads these messages: otherwise it is made when the first one comes."""
        for method in methods:
            if kind := self.get_message_type(method):
                self._converter.get_structure_hook(kind)

    def receive(self, body: bytes) -> None:
        """Handle one message. What does not fit the protocol is refused, never fatal."""
        fields: dict[str, Any] = {}
        try:
            message: Any = json.loads(body)
            if isinstance(message, dict):
                fields = cast("dict[str, Any]", message)
                if refusal := self._refusal(fields.get("method"), fields.get("id")):
                    self._refuse(fields, refusal)
                    return
                structured = cast("RPCMessage", self.structure_message(fields))
                self._begun = self._begun or fields.get("method") == INITIALIZE
                self.handle_message(structured)
        except ConnectionError:
            raise
        except Exception as error:
            # Handlers of ours tell their own faults: what comes here is for the editor to mend.
            log.debug("a message of another shape", exc_info=error)
            if not isinstance(error, JsonRpcException):
                log.warning("a message of another shape was left out (%s)", place_of(error))
            self._refuse(
                fields, JsonRpcInvalidParams(f"{fields.get('method')}: parameters of another shape")
            )

    def _refusal(self, method: object, name: object) -> JsonRpcException | None:
        """Why a message does not fit where the conversation stands."""
        if isinstance(name, list | dict):
            return JsonRpcInvalidRequest("the id of a message is a number or a text")
        if method is None or method == EXIT:
            return None
        if self._shutdown:
            return JsonRpcInvalidRequest("the server was shut down: only exit may follow")
        if not self._begun and method != INITIALIZE:
            return JsonRpcServerNotInitialized("the server waits for initialize")
        if self._begun and method == INITIALIZE:
            return JsonRpcInvalidRequest("the server is initialized already")
        return None

    def _refuse(self, fields: dict[str, Any], refusal: JsonRpcException) -> None:
        """Answer a request; notifications have no answer."""
        if "id" in fields and "method" in fields:
            self._send_response(fields["id"], error=refusal.to_response_error())


_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d+)[ \t]*\r?\n$", re.IGNORECASE)


def _bodies(reader: BinaryIO) -> Iterator[bytes]:
    """The messages of a stream, one by one, until it ends."""
    length = 0
    for header in iter(reader.readline, b""):
        # Behind the rest of a message that was longer than it said, the next one begins.
        if told := _LENGTH.search(header):
            length = int(told[1])
        elif length and not header.strip():
            body = reader.read(length)
            if len(body) < length:
                return
            yield body
            length = 0


class Writer:
    """Sends each message whole, from whichever thread."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        with self._lock:
            self._stream.write(data)
            self._stream.flush()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.close()


def open_stdio() -> tuple[BinaryIO, Writer]:
    """Our stdin and stdout, and nobody else's: prints and children get stderr and no input."""
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return reader, Writer(writer)


def open_loopback(port: int) -> tuple[BinaryIO, Writer]:
    """The first editor that comes to a port of this machine."""
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise RooflintError(f"port {port} cannot be used ({error}): name another one") from error
    with listener:
        print(f"rooflint: listening on 127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr)
        connection, _ = listener.accept()
    return connection.makefile("rb"), Writer(connection.makefile("wb"))
