"""What is heard of a run → the editor's progress bar and the `rooflint/output` notification."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from uuid import uuid4

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from rooflint.runs.request import Progress
from rooflint_server.session import Editor

OUTPUT = "rooflint/output"
"""`{"stage": ..., "text": ...}`: a piece of what the script printed."""

MOST_PENDING = 1 << 20
"""Characters that the editor was not told yet: whoever prints more has to wait."""
PATIENCE_S = 1.0
"""How long: a run that is to end must not wait for an editor that hears nothing."""


async def open_progress(
    server: LanguageServer,
    editor: Editor,
    given: lsp.ProgressToken | None,
    title: str,
    message: str,
) -> lsp.ProgressToken | None:
    """Begin to show progress, under the editor's own token or a new one; `None`: it shows none."""
    token = given
    if token is None and editor.progress:
        token = str(uuid4())
        try:
            create = lsp.WorkDoneProgressCreateParams(token)
            await asyncio.wait_for(server.window_work_done_progress_create_async(create), timeout=5)
        except Exception:
            return None  # An editor that refuses or is silent gets no progress, but its profile.
    if token is not None:
        server.progress(
            lsp.ProgressParams(
                token, lsp.WorkDoneProgressBegin(title, cancellable=True, message=message)
            )
        )
    return token


def close_progress(server: LanguageServer, token: lsp.ProgressToken | None, message: str) -> None:
    if token is not None:
        server.progress(lsp.ProgressParams(token, lsp.WorkDoneProgressEnd(message=message)))


class Listener:
    """Hears a run from its thread, and tells the editor from the server's: pieces become one."""

    def __init__(self, server: LanguageServer, token: lsp.ProgressToken | None) -> None:
        self._server = server
        self._token = token
        self._heard: deque[Progress] = deque()
        self._loop = asyncio.get_running_loop()
        self._pending = 0
        self._told = threading.Condition()

    def hear(self, progress: Progress) -> None:
        with self._told:
            self._told.wait_for(lambda: self._pending < MOST_PENDING, PATIENCE_S)
            self._pending += len(progress.output)
            self._heard.append(progress)
        self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        output: dict[str, str] = {}
        message = ""
        while self._heard:
            progress = self._heard.popleft()
            if progress.output:
                output[progress.stage] = output.get(progress.stage, "") + progress.output
            message = progress.message or message
        for stage, text in output.items():
            self._server.protocol.notify(OUTPUT, {"stage": stage, "text": text})
            with self._told:
                self._pending -= len(text)
                self._told.notify_all()
        if message and self._token is not None:
            report = lsp.WorkDoneProgressReport(message=message)
            self._server.progress(lsp.ProgressParams(self._token, report))
