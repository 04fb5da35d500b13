"""Editors that send anything in any order: the server stays, and answers the next hover right."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from raw_editor import MARKDOWN, RawEditor

from fuzzing.nasty import NUMBERS, TEXTS, damage_json, damage_text, value

TRAIN = """\
import torch
import helper

def train():
    model = torch.nn.Linear(8, 8).cuda()
    total = 0.0
    for step in range(100):
        loss = model(torch.ones(8, 8, device="cuda")).sum()
        loss.backward()
        total += loss.item()
    return total
"""
ITEM_LINE = 9
HELPER = "import torch\n\ndef log(x):\n    print(x.item())\n\nx = torch.ones(3).cuda()\n"
CELL = "for i in range(9):\n    total = y.sum().item()\n"
WAITS = "waits for the GPU"
MOST_MIB = 600
EVERYTHING = json.loads(
    """{"textDocument": {"hover": {"contentFormat": ["markdown"]}, "diagnostic": {},
    "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": [""]}}},
    "publishDiagnostics": {"relatedInformation": true, "codeDescriptionSupport": true}},
    "workspace": {"configuration": true, "workspaceFolders": true, "workspaceEdit":
    {"documentChanges": true}, "codeLens": {"refreshSupport": true}, "diagnostics":
    {"refreshSupport": true}, "inlayHint": {"refreshSupport": true},
    "didChangeWatchedFiles": {"dynamicRegistration": true}}, "window": {"workDoneProgress": true},
    "general": {"positionEncodings": ["utf-8", "utf-16"]}}"""
)
ODD_URIS = (
    "", "no uri", "\ud800", "file:", "file://", "file:///%00.py", "file:///%FF%FE.py",
    f"file:///{'a' * 300}.py", "file:relative.py", "file://[::1/x.py", "file:///C:/Users/me/x.py",
    "file:///c%3A/Users/me/x.ipynb", "file://server/share/x.py", "//server/share/x.py",
    "untitled:Untitled-1", "git:/a.py?HEAD", "vscode-notebook-cell:/a.ipynb#1", "file:///dev/zero",
    "file:///proc/self/mem", "https://example.org/a.py",
)  # fmt: skip
ODD_IDS: tuple[Any, ...] = ("x", "x", 7, 8, None, 1.5, [], {}, True, -1, 2**70, "\ud800", "")
REQUESTS = (
    "textDocument/hover", "textDocument/codeAction", "textDocument/codeLens",
    "textDocument/inlayHint", "textDocument/diagnostic", "workspace/diagnostic",
    "workspace/executeCommand", "initialize", "completionItem/resolve", "$/nothing", "no/method",
)  # fmt: skip
COMMANDS = ("import", "page", "locate", "compare", "clear", "profile", "dance")


def case(dice: Random, folder: Path) -> None:
    """One editor from its first message to its last."""
    with tempfile.TemporaryFile() as log, RawEditor(stderr=log) as editor:
        Hostile(dice, folder, editor).live()
        assert editor.leave() == 0
        log.seek(0)
        said = log.read().decode("utf-8", "replace")
    assert "Traceback" not in said, said[-3000:]


class Hostile:
    """Sends what the dice say, and looks now and then whether the server still knows its work."""

    def __init__(self, dice: Random, folder: Path, editor: RawEditor):
        self.dice, self.folder, self.editor = dice, folder, editor
        self.own = (folder / "train.py").as_uri()
        self.version = 1
        self.cells = 0
        self.sent: list[dict[str, Any]] = []
        self.uris = [
            *((folder / name).as_uri() for name in ("b.py", "helper.py", "loop/a.py", "a.ipynb")),
            self.own,
            *dice.sample(ODD_URIS, 3),
        ]

    def live(self) -> None:
        dice, editor = self.dice, self.editor
        (self.folder / "helper.py").write_text(HELPER)
        if dice.random() < 0.2:
            for _ in range(10):
                self.send_something()
        params: dict[str, Any] = {"capabilities": dice.choice((MARKDOWN, EVERYTHING))}
        if dice.random() < 0.3:
            odd = damage_json(dice, copy.deepcopy(params), 2)
            editor.send(id="odd", method="initialize", params=odd)
            self.answer("odd")
        editor.begin(self.folder, **params)
        if dice.random() < 0.9:
            editor.tell("initialized")
        self.check(first=True)
        for _ in range(dice.choice((3, 6))):
            for _ in range(dice.choice((5, 20, 60))):
                self.send_something()
            self.check()

    # --- what is right

    def check(self, first: bool = False) -> None:
        """Whatever came before: a file and a notebook that are opened now are known."""
        editor = self.editor
        for name in ("pyproject.toml", ".gitignore"):
            self.gone(self.folder / name)
        if not first:
            editor.tell("textDocument/didClose", textDocument={"uri": self.own})
            if self.dice.random() < 0.5:
                self.gone(self.folder / "helper.py")
                (self.folder / "helper.py").write_text(HELPER)
        editor.open(self.own, TRAIN)
        editor.tell("textDocument/didSave", textDocument={"uri": self.own})
        card = self.hover(self.own, ITEM_LINE, 18)
        assert WAITS in card, card
        if self.dice.random() < 0.5:
            book, cells = self.open_notebook(("import torch\ny = torch.ones(3).cuda()", CELL))
            assert WAITS in self.hover(cells[1], 1, 20)
            editor.tell("notebookDocument/didClose", notebookDocument=book, cellTextDocuments=[])
        for message in editor.told:
            if message.get("method") == "window/logMessage":
                told = message["params"]
                assert told["type"] != 1, f"{told['message']}\n{self.last()}"
        editor.told.clear()
        size = Path(f"/proc/{editor.process.pid}/statm").read_text().split()[1]
        assert int(size) * os.sysconf("SC_PAGE_SIZE") < MOST_MIB << 20, f"{size} pages"

    def hover(self, uri: str, line: int, character: int) -> str:
        """On a busy machine it may take a while until a first look is done."""
        card = ""
        for _ in range(20):
            card = card or self.editor.hover(uri, line, character)
        return card

    def answer(self, name: str) -> None:
        """Wait for the answer to a request."""
        while self.editor.receive().get("id") != name:
            pass

    def last(self) -> str:
        return "\n".join(ascii(message)[:200] for message in self.sent[-12:])

    # --- what is sent

    def send_something(self) -> None:
        dice = self.dice
        kinds: Sequence[tuple[int, Callable[[], object]]] = (
            (30, self.edit), (10, self.burst), (15, self.come_or_go), (25, self.ask),
            (6, self.cancel), (6, self.answer_oddly), (8, self.change_disk), (6, self.settle),
            (8, self.notebook), (4, self.garbage), (5, self.again),
        )  # fmt: skip
        dice.choices([send for _, send in kinds], [weight for weight, _ in kinds])[0]()

    def send(self, damage: float = 0.15, **message: Any) -> None:
        if self.dice.random() < damage:
            message = damage_json(self.dice, copy.deepcopy(message), self.dice.choice((1, 1, 3)))
            if not isinstance(message, dict) or message.get("method") in ("exit", "shutdown"):
                return
        self.sent = [*self.sent[-40:], message]
        self.editor.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def tell(self, method: str, **params: Any) -> None:
        self.send(method=method, params=params)

    def uri(self) -> str:
        return self.dice.choice(self.uris)

    def text(self) -> str:
        dice = self.dice
        if dice.random() < 0.3:
            return dice.choice(TEXTS)[:5000]
        return damage_text(dice, dice.choice((TRAIN, HELPER, CELL)), dice.choice((0, 1, 3)))

    def number(self) -> Any:
        if self.dice.random() < 0.2:
            return self.dice.choice((*NUMBERS[:13], "1", None))
        return self.dice.randrange(14)

    def place(self) -> dict[str, Any]:
        return {"line": self.number(), "character": self.number()}

    def spot(self) -> dict[str, Any]:
        return {"start": self.place(), "end": self.place()}

    def named(self, uri: str) -> dict[str, Any]:
        self.version += 1
        return {"uri": uri, "version": self.dice.choice((self.version, self.version, -1, None, 0))}

    def change(self) -> dict[str, Any]:
        if self.dice.random() < 0.15:
            return {"text": self.text()}
        return {"range": self.spot(), "text": self.dice.choice(("x", "\n", ".", self.text()[:30]))}

    def edit(self) -> None:
        changes = [self.change() for _ in range(self.dice.choice((1, 1, 1, 5, 0)))]
        named = self.named(self.uri())
        self.tell("textDocument/didChange", textDocument=named, contentChanges=changes)

    def burst(self) -> None:
        """As many edits as come in a tenth of a second, or a whole one."""
        uri, place = self.own, {"line": 0, "character": 0}
        for _ in range(self.dice.choice((100, 100, 1000))):
            change = {"range": {"start": place, "end": place}, "text": self.dice.choice("#\n ")}
            named = self.named(uri)
            self.send(
                0.0,
                method="textDocument/didChange",
                params={"textDocument": named, "contentChanges": [change]},
            )

    def come_or_go(self) -> None:
        uri = self.uri()
        document = {**self.named(uri), "text": self.text()}
        document["languageId"] = self.dice.choice(("python", "python", "python", "r", ""))
        what = self.dice.choice(("didOpen", "didOpen", "didClose", "didSave", "willSave"))
        self.tell(f"textDocument/{what}", textDocument=document, reason=1)

    def ask(self) -> None:
        dice, method = self.dice, self.dice.choice(REQUESTS)
        shown = [{"range": self.spot(), "message": "x"}]
        params: dict[str, Any] = {
            "textDocument": {"uri": self.uri()}, "position": self.place(), "range": self.spot(),
            "context": {"diagnostics": shown, "only": ["quickfix"]},
            "previousResultIds": [{"uri": self.uri(), "value": "left"}], "capabilities": {},
        }  # fmt: skip
        if method == "workspace/executeCommand":
            command = dice.choice(COMMANDS)
            uri = self.uri() if command != "profile" else (self.folder / "none.py").as_uri()
            arguments = dice.choice(([uri], [uri, self.number()], [{"uri": uri}], [value(dice)]))
            if command == "profile" and dice.random() < 0.9:
                return
            params = {"command": f"rooflint.server.{command}", "arguments": arguments}
            damage = 0.0 if command == "profile" else 0.15
            self.send(damage, id=dice.choice(ODD_IDS), method=method, params=params)
            return
        self.send(id=dice.choice(ODD_IDS), method=method, params=params)

    def cancel(self) -> None:
        self.tell("$/cancelRequest", id=self.dice.choice(ODD_IDS))
        token = value(self.dice)
        self.tell(self.dice.choice(("$/progress", "window/workDoneProgress/cancel")), token=token)

    def answer_oddly(self) -> None:
        """To what the server may have asked, or not."""
        asked = [m["id"] for m in self.editor.told if "id" in m and "method" in m]
        name = self.dice.choice((*asked, *ODD_IDS))
        kind = self.dice.choice(("result", "error"))
        self.send(id=name, **{kind: value(self.dice)})

    def change_disk(self) -> None:
        """Files come, go, change and become something else; now and then nobody says so."""
        dice, folder = self.dice, self.folder
        path = folder / dice.choice(("b.py", "helper.py", "loop", "pyproject.toml", ".gitignore"))
        meta = folder / ".rooflint" / "recordings" / "one" / "meta.json"
        self.gone(path)
        acts: Sequence[Callable[[], object]] = (
            lambda: path.write_text(self.text(), "utf-8", "replace"),
            path.mkdir,
            lambda: path.symlink_to(path.name),
            lambda: path.symlink_to("."),
            lambda: path.symlink_to("/dev/zero"),
            partial(os.mkfifo, path),
            lambda: (folder / "train.py").write_text(TRAIN),
            lambda: (folder / "train.py").rename(path),
            lambda: meta.parent.mkdir(parents=True),
            lambda: meta.write_text(json.dumps(value(dice)), "utf-8", "replace"),
        )
        with contextlib.suppress(OSError):
            dice.choice(acts)()
        if dice.random() < 0.8:
            uris = [path.as_uri(), meta.as_uri(), self.uri()]
            changes = [{"uri": uri, "type": dice.choice((1, 2, 3))} for uri in uris]
            self.tell("workspace/didChangeWatchedFiles", changes=changes)

    def gone(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def settle(self) -> None:
        dice = self.dice
        if dice.random() < 0.5:
            own = {"python": value(dice), "inlayHints": value(dice), "codeLens": value(dice)}
            self.tell("workspace/didChangeConfiguration", settings={"rooflint": own})
        else:
            folders = [{"uri": uri, "name": "x"} for uri in dice.sample(self.uris, 2)]
            folders.append({"uri": self.folder.as_uri(), "name": "own"})
            event = {"added": folders[:1], "removed": folders[1:]}
            if dice.random() < 0.5:
                event = {"added": folders[1:], "removed": folders[:1]}
            self.tell("workspace/didChangeWorkspaceFolders", event=event)
        self.tell("$/setTrace", value=dice.choice(("off", "messages", "verbose")))

    def made(self, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        self.cells += 1
        uri = f"vscode-notebook-cell:{self.folder}/a.ipynb#{self.cells}"
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        return {"kind": 2, "document": uri}, item

    def open_notebook(self, texts: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """As an editor would."""
        made = [self.made(text) for text in texts]
        book = {"uri": (self.folder / "fresh.ipynb").as_uri(), "notebookType": "jupyter-notebook"}
        told = {**book, "version": 1, "cells": [cell for cell, _ in made]}
        items = [item for _, item in made]
        self.editor.tell("notebookDocument/didOpen", notebookDocument=told, cellTextDocuments=items)
        return book, [item["uri"] for item in items]

    def notebook(self) -> None:
        dice = self.dice
        made = [self.made(self.text()) for _ in range(dice.randrange(1, 5))]
        cells, items = zip(*made, strict=True)
        uri = dice.choice(((self.folder / "a.ipynb").as_uri(), self.own, self.uri()))
        book = {**self.named(uri), "notebookType": "jupyter-notebook", "cells": list(cells)}
        old = f"vscode-notebook-cell:{self.folder}/a.ipynb#{dice.randrange(self.cells + 2)}"
        array = {"start": self.number(), "deleteCount": self.number(), "cells": list(cells)}
        change = {
            "structure": {"array": array, "didOpen": list(items), "didClose": [{"uri": old}]},
            "textContent": [{"document": self.named(old), "changes": [self.change()]}],
        }
        for part in ("structure", "textContent"):
            if dice.random() < 0.4:
                del change[part]
        what = dice.choice(("didOpen", "didChange", "didChange", "didSave", "didClose"))
        self.tell(
            f"notebookDocument/{what}",
            notebookDocument=book,
            cellTextDocuments=list(items),
            change={"cells": change},
        )
        self.uris = [*self.uris[-12:], dice.choice((old, items[0]["uri"]))]
        if self.own not in self.uris:
            self.uris.append(self.own)

    def garbage(self) -> None:
        """What is no message, in a frame that says its true length."""
        bodies = (b"", b"null", b"[]", b"7", b"\xff\xfe", b"{", b"{}" * 3, b'{"a":' * 50_000, b'""')
        self.editor.write(self.dice.choice(bodies))

    def again(self) -> None:
        """What was sent already, later than it should be."""
        if self.sent:
            self.send(0.0, **{"method": "x", **self.dice.choice(self.sent)})
