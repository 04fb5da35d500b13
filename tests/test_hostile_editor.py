"""Whatever comes in, in whatever order: the server stays, and answers the next hover right."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from raw_editor import SERVER, RawEditor

from rooflint_server.document import Document
from rooflint_server.session import Session

TRAIN = """\
import torch

def train():
    model = torch.nn.Linear(8, 8).cuda()
    total = 0.0
    for step in range(100):
        loss = model(torch.ones(8, 8, device="cuda")).sum()
        loss.backward()
        total += loss.item()
    return total
"""
ITEM_LINE = 8
WAITS = "waits for the GPU"


@pytest.fixture(scope="module")
def running(tmp_path_factory: Any) -> Iterator[tuple[RawEditor, Path]]:
    """One server that meets all of this, and its folder."""
    workspace: Path = tmp_path_factory.mktemp("workspace")
    with RawEditor() as editor:
        editor.begin(workspace)
        editor.tell("initialized")
        yield editor, workspace
        assert editor.leave() == 0


@pytest.fixture
def folder(running: tuple[RawEditor, Path]) -> Path:
    folder = running[1] / str(len([*running[1].iterdir()]))
    folder.mkdir()
    return folder


@pytest.fixture
def editor(running: tuple[RawEditor, Path], folder: Path) -> Iterator[RawEditor]:
    """The server with a file open that waits; at the end it is as right as before."""
    editor, _ = running
    editor.open(uri_of(folder), TRAIN)
    still_right(editor, folder)
    editor.told.clear()
    yield editor
    still_right(editor, folder)
    editor.tell("textDocument/didClose", textDocument={"uri": uri_of(folder)})


def uri_of(folder: Path) -> str:
    return (folder / "train.py").as_uri()


def still_right(editor: RawEditor, folder: Path) -> None:
    """On a busy machine a first look may take longer than a hover waits for it."""
    cards = (editor.hover(uri_of(folder), ITEM_LINE) for _ in range(30))
    assert WAITS in next(filter(None, cards), "")


# --- messages -----------------------------------------------------------------------------


BODIES = [
    b"",
    b"null",
    b"NaN",
    b"\xff\xfe",
    b"{",
    b"{}" * 10,
    b'{"a":' * 100_000,
    b'{"jsonrpc":"2.0","method":"initialized","params":{"a":' + b"9" * 10_000 + b"}}",
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x"}).encode("utf-16"),
]


def test_bodies_that_are_no_messages(editor: RawEditor, folder: Path):
    """They are the editor's fault, and told in a line each."""
    for body in BODIES:
        editor.write(body)
    still_right(editor, folder)
    assert not [said for said in editor.logged() if "\n" in said]


def test_frames_that_say_the_wrong_length_lose_no_more_than_their_neighbour(
    editor: RawEditor, folder: Path
):
    body = b'{"jsonrpc":"2.0","id":77,"method":"nothing"}'
    for said in (5, len(body) + 20):
        editor.write_raw(b"Content-Length: %d\r\n\r\n%s" % (said, body))
        editor.tell("nothing")  # Of this one the second takes a part.
        still_right(editor, folder)
    for header in (b"Content-Length: -5", b"Content-Length: five", b"x" * 100_000, b""):
        editor.write_raw(header + b"\r\n\r\n")
        still_right(editor, folder)


ODD_IDS: list[Any] = ["x", None, 1.5, [], {}, True, -1, 2**70, "\ud800"]


def test_ids_of_every_kind_repeated_cancelled_and_answered(editor: RawEditor, folder: Path):
    asked = {"textDocument": {"uri": uri_of(folder)}, "position": {"line": 8, "character": 18}}
    for odd in ODD_IDS:
        for _ in range(2):
            editor.send(id=odd, method="textDocument/hover", params=asked)
        editor.tell("$/cancelRequest", id=odd)
        editor.tell("$/cancelRequest", id=odd)
        editor.send(id=odd, result={"x": 1})
        editor.send(id=odd, error=7)
        editor.send(id=odd)
    still_right(editor, folder)
    assert not [said for said in editor.logged() if "\n" in said]
    for unfit in ([], {}):
        refused = [m for m in editor.told if m.get("id") == unfit and "error" in m]
        assert len(refused) == 2


ODD_MESSAGES: list[dict[str, Any]] = [
    {},
    {"jsonrpc": "1.0"},
    {"method": 7},
    {"method": []},
    {"method": "x" * 100_000},
    {"id": 1, "method": "textDocument/hover"},
    {"id": 1, "method": "textDocument/hover", "params": [1]},
    {"method": "$/setTrace", "params": {"value": "loud"}},
    {"method": "$/progress", "params": {}},
    {"method": "window/workDoneProgress/cancel", "params": {"token": {}}},
    {"id": 5, "method": "client/registerCapability", "params": {}},
]


def test_messages_that_lack_parts_or_are_no_ones_to_send(editor: RawEditor):
    for message in ODD_MESSAGES:
        editor.send(**message)
        editor.write(json.dumps(message).encode())


ODD_PLACES: list[tuple[Any, Any]] = [
    (-1, 0),
    (0, -1),
    (10**9, 10**9),
    (2**63, 2**63),
    ("1", "2"),
    (None, []),
    (1.5, 1e300),
    (True, False),
]


def test_places_that_are_nowhere(editor: RawEditor, folder: Path):
    identifier = {"uri": uri_of(folder), "version": -(2**70)}
    for line, character in ODD_PLACES:
        place = {"line": line, "character": character}
        spot = {"start": place, "end": place}
        told = {"diagnostics": [{"range": spot, "message": 7}], "only": [7]}
        for what in ("hover", "codeAction", "inlayHint", "codeLens", "diagnostic"):
            asked = {"textDocument": identifier, "position": place, "range": spot, "context": told}
            editor.send(id=7, method=f"textDocument/{what}", params=asked)
        change = [{"range": spot, "text": ""}]
        editor.tell("textDocument/didChange", textDocument=identifier, contentChanges=change)
    editor.rewrite(uri_of(folder), TRAIN)


@pytest.mark.parametrize("text", ["\ud800 = 1\n", "\0", "\ufeff", "# \ud83d\ude00 \udc00\n"])
def test_texts_that_no_file_can_hold(editor: RawEditor, folder: Path, text: str):
    uri = uri_of(folder)
    editor.rewrite(uri, text + TRAIN)
    editor.hover(uri, ITEM_LINE)
    place = {"line": 0, "character": 0}
    asked = {"start": place, "end": {"line": 20, "character": 0}}
    editor.ask(
        "textDocument/codeAction",
        textDocument={"uri": uri},
        range=asked,
        context={"diagnostics": []},
    )
    editor.rewrite(uri, TRAIN)


def test_documents_that_are_changed_saved_and_closed_before_they_are_open_and_after(
    editor: RawEditor, folder: Path
):
    order = ("didChange", "didSave", "didClose", "didClose", "didOpen", "didOpen")
    for uri in ((folder / "never.py").as_uri(), uri_of(folder)):
        document = {"uri": uri, "version": 9, "languageId": "python", "text": TRAIN}
        for what in order:
            changes = [{"text": TRAIN}]
            editor.tell(f"textDocument/{what}", textDocument=document, contentChanges=changes)
    cell = "vscode-notebook-cell:/a#1"
    cells = [{"kind": 2, "document": cell}]
    texts = [{"uri": cell, "languageId": "python", "version": 1, "text": TRAIN}]
    nowhere = {"start": 10, "deleteCount": 100, "cells": cells}
    change = {
        "structure": {"array": nowhere, "didOpen": [], "didClose": [{"uri": "no cell"}]},
        "textContent": [{"document": {"uri": "no cell", "version": 1}, "changes": []}],
    }
    for uri in ((folder / "a.ipynb").as_uri(), uri_of(folder)):
        notebook = {"uri": uri, "notebookType": "jupyter-notebook", "version": 1, "cells": cells}
        for what in order:
            editor.tell(
                f"notebookDocument/{what}",
                notebookDocument=notebook,
                cellTextDocuments=texts,
                change={"cells": change},
            )


ARGUMENTS: list[Any] = [
    None,
    [],
    [None],
    [[]],
    [{}],
    [{"uri": 7}],
    [{"uri": "{uri}", "cwd": "\0"}],
    [{"uri": "{uri}", "steps": -1}],
    [{"uri": "{uri}", "seconds": float("inf")}],
    [{"uri": "{uri}", "python": "/no/python\0"}],
    [{"root": None, "path": [], "line": "x"}],
    ["{uri}", -5],
]


def test_commands_with_arguments_of_another_shape_get_a_sentence(editor: RawEditor, folder: Path):
    (folder / "train.py").write_text(TRAIN)
    for name in ("profile", "import", "page", "locate", "compare", "dance"):
        for each in ARGUMENTS:
            arguments = json.loads(json.dumps(each).replace("{uri}", uri_of(folder)))
            answer = editor.ask(
                "workspace/executeCommand", command=f"rooflint.server.{name}", arguments=arguments
            )
            assert "\n" not in answer["message"], (name, each, answer)
            assert "inside of rooflint" not in answer["message"], (name, each, answer)


def test_settings_and_folders_of_another_shape(editor: RawEditor, folder: Path):
    for settings in (None, 7, [], {"rooflint": 7}, {"rooflint": {"python": 7, "inlayHints": "x"}}):
        editor.tell("workspace/didChangeConfiguration", settings=settings)
    uris = ["", "file:///%00", "file:///meta.json", "untitled:a", "x:y", uri_of(folder)]
    changes = [{"uri": uri, "type": kind} for uri in uris for kind in (1, 2, 3, 99)]
    editor.tell("workspace/didChangeWatchedFiles", changes=changes)
    folders = [{"uri": uri, "name": ""} for uri in uris[:-1]]
    for event in ({"added": folders, "removed": []}, {"added": [], "removed": folders}):
        editor.tell("workspace/didChangeWorkspaceFolders", event=event)


# --- names --------------------------------------------------------------------------------


LONG = "/".join(["a" * 200] * 30)

URIS = [
    "",
    "no uri",
    "\ud800",
    "file:",
    "file://",
    "file:///%00.py",
    "file:///a%00b/c.py",
    "file:///\ud800.py",
    "file:///%FF%FE.py",
    f"file:///{'a' * 300}.py",
    f"file:///{LONG}.py",
    "file:relative.py",
    "file://[::1/x.py",
    "file:///C:/Users/me/x.py",
    "file:///c%3A/Users/me/x.py",
    "file://server/share/x.py",
    "//server/share/x.py",
    "untitled:Untitled-1",
    "git:/a.py?x",
    "https://example.org/x.py",
    "vscode-notebook-cell:/a.ipynb#1",
]


@pytest.mark.parametrize("uri", URIS, ids=lambda uri: ascii(uri)[1:30])
def test_documents_of_any_name(uri: str, editor: RawEditor, folder: Path):
    """One that cannot be a file's keeps no other from being looked at, and no settings from being
    read again."""
    editor.open(uri, TRAIN)
    editor.hover(uri, ITEM_LINE)
    editor.rewrite(uri, TRAIN + "\n")
    editor.hover(uri, ITEM_LINE)
    for command in ("profile", "page", "compare", "import"):
        answer = editor.execute(command, uri)
        assert "inside of rooflint" not in answer["message"], answer
    own, settings = uri_of(folder), folder / "pyproject.toml"
    for text, shown in (('[tool.rooflint]\nignore = ["item-in-loop"]\n', False), ("", True)):
        settings.write_text(text)
        editor.tell("textDocument/didSave", textDocument={"uri": own})
        assert (WAITS in editor.hover(own, ITEM_LINE)) is shown
    editor.tell("textDocument/didClose", textDocument={"uri": uri})
    still_right(editor, folder)
    assert not editor.logged()


def test_files_that_are_deleted_renamed_or_become_something_else(editor: RawEditor, folder: Path):
    file = folder / "train.py"

    def make_loop() -> None:
        file.symlink_to("train.py")

    steps: list[tuple[Callable[[], object], Callable[[], object]]] = [
        (lambda: file.write_text(TRAIN), lambda: file.rename(folder / "renamed.py")),
        (file.mkdir, file.rmdir),
        (make_loop, file.unlink),
        (lambda: os.mkfifo(file), file.unlink),
    ]
    for come, go in steps:
        for happen in (come, go):
            happen()
            change = {"uri": uri_of(folder), "type": 2}
            editor.tell("workspace/didChangeWatchedFiles", changes=[change])
            editor.tell("textDocument/didSave", textDocument={"uri": uri_of(folder)})
            still_right(editor, folder)
            assert isinstance(editor.execute("page", uri_of(folder))["message"], str)


def test_links_in_circles_and_to_devices_keep_nobody_waiting(editor: RawEditor, folder: Path):
    (folder / "loop").symlink_to("loop")
    (folder / "self").symlink_to(".")
    for name in ("endless.py", "pyproject.toml", ".gitignore"):
        (folder / name).symlink_to("/dev/zero")
    for name in ("pipe.py", "pipe.ipynb"):
        os.mkfifo(folder / name)
    for name, make in (("a", lambda meta: meta.symlink_to("/dev/zero")), ("b", os.mkfifo)):
        recording = folder.parent / ".rooflint" / "recordings" / name
        recording.mkdir(parents=True)
        make(recording / "meta.json")
    text = f"import endless, pipe\n{TRAIN}endless.run(1)\npipe.run(2)\n"
    for inside in ("user.py", "loop/user.py", "self/self/self/user.py"):
        uri = (folder / inside).as_uri()
        editor.open(uri, text)
        assert WAITS in editor.hover(uri, ITEM_LINE + 1)
        editor.tell("textDocument/didSave", textDocument={"uri": uri})
        assert WAITS in editor.hover(uri, ITEM_LINE + 1)
    for name in ("endless.py", "pipe.py", "../.rooflint/recordings/a"):
        answer = editor.execute("import", str(folder / name))
        assert "\n" not in answer["message"], answer
    shutil.rmtree(folder.parent / ".rooflint")


# --- amounts ------------------------------------------------------------------------------


def test_a_thousand_edits_at_once_are_one_look(editor: RawEditor, folder: Path):
    uri = uri_of(folder)
    place = {"line": 0, "character": 0}
    for version in range(1000):
        change = [{"range": {"start": place, "end": place}, "text": "#\n"}]
        identifier = {"uri": uri, "version": version}
        editor.tell("textDocument/didChange", textDocument=identifier, contentChanges=change)
    assert WAITS in editor.hover(uri, ITEM_LINE + 1000)
    shown = [one for one in editor.told if one["method"] == "textDocument/publishDiagnostics"]
    assert len(shown) < 100  # A look is begun only when no edit waits.
    editor.rewrite(uri, TRAIN)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_flat_over_thousands_of_edits(editor: RawEditor, folder: Path):
    """By 6,000 what is kept of texts that are no more is full, some 45 MB; from there to 20,000
    it stays within 3 MB. What is left to add is what an allocator scatters."""
    uri, functions = uri_of(folder), 40
    text = TRAIN + "".join(f"\ndef f{n}(x):\n    return x.cuda() + {n}\n" for n in range(functions))

    def edit(count: int) -> None:
        for version in range(count):
            line = len(TRAIN.splitlines()) + 2 + 3 * (version * 7 % functions)
            end = {"line": line, "character": 99}
            change = [{"range": {"start": end, "end": end}, "text": f" + {version}"}]
            identifier = {"uri": uri, "version": version}
            editor.tell("textDocument/didChange", textDocument=identifier, contentChanges=change)
            if version % 25 == 24:
                still_right(editor, folder)
            if version % 100 == 99:
                editor.rewrite(uri, text)
                editor.told.clear()

    editor.rewrite(uri, text)
    edit(6000)
    before = resident_bytes(editor)
    edit(2500)
    assert resident_bytes(editor) < 1.15 * before
    editor.rewrite(uri, TRAIN)


def resident_bytes(editor: RawEditor) -> int:
    statm = Path(f"/proc/{editor.process.pid}/statm").read_text()
    return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_files_that_were_closed_leave_nothing_but_what_they_say_of_others(tmp_path: Path):
    """Neither trees nor findings: of a thousand files those would be half a gigabyte."""
    session = Session(folders=[str(tmp_path)])
    for name in ("kept.py", "never_saved.py"):
        file = tmp_path / name
        if name == "kept.py":
            file.write_text(TRAIN)
        document = Document(file.as_uri(), str(file))
        document.rewrite(TRAIN)
        session.documents[document.path] = document
        assert (await session.know(document)).findings
        session.drop(document)
    other = Document((tmp_path / "other.py").as_uri(), str(tmp_path / "other.py"))
    session.documents[other.path] = other
    await session.know(other)
    project: Any = session.project_of(other.path)
    followed = project._followings
    assert str(tmp_path / "never_saved.py") not in followed
    assert not followed[str(tmp_path / "kept.py")].flows
    elsewhere = Document("file:///elsewhere/a.py", "/elsewhere/a.py")
    session.documents[elsewhere.path] = elsewhere
    await session.know(elsewhere)
    session.drop(elsewhere)
    assert set(session.projects) == {str(tmp_path)}


def test_a_folder_of_50_000_files_keeps_nobody_waiting(tmp_path: Path):
    """They are links to one file, so that they are made soon; each has a name of its own."""
    many = tmp_path / "many"
    many.mkdir()
    (many / "m.py").write_text("import torch\n")
    for number in range(50_000):
        os.link(many / "m.py", many / f"m{number}.py")
    with RawEditor() as editor:
        editor.begin(tmp_path)
        editor.open(uri_of(tmp_path), TRAIN)
        still_right(editor, tmp_path)
        time.sleep(1)  # Meanwhile the files around it are looked at.
        still_right(editor, tmp_path)
        uris = [(many / f"m{number}.py").as_uri() for number in range(50_000)]
        changes = [{"uri": uri, "type": 2} for uri in uris]
        editor.tell("workspace/didChangeWatchedFiles", changes=changes)
        still_right(editor, tmp_path)
        assert editor.leave() == 0


# --- disks --------------------------------------------------------------------------------

RUN = "import torch\nfor step in range(20):\n    torch.ones(8, 8).sum()\n"


def mounted(folder: Path, size: str, then: str) -> list[str]:
    """A server whose `folder` is a disk of its own."""
    words = " ".join(SERVER)
    script = f"mount -t tmpfs -o size={size} none {folder} && cp {folder}.py {folder}/run.py"
    return ["unshare", "--mount", "sh", "-c", f"{script} && {then} exec {words}"]


@pytest.mark.parametrize(
    ("size", "then", "said"),
    [
        ("1m", "mount -o remount,ro {folder} &&", "Read-only file system; choose"),
        ("16k", "", "No space left on device; make room"),
    ],
)
def test_a_disk_that_takes_nothing_costs_a_sentence(
    tmp_path: Path, size: str, then: str, said: str
):
    folder = tmp_path / "disk"
    folder.mkdir()
    (tmp_path / "disk.py").write_text(RUN)
    command = mounted(folder, size, then.format(folder=folder))
    if subprocess.run([*command[:2], "mount", "-t", "tmpfs", "none", folder]).returncode:
        pytest.skip("no disk may be mounted here")
    trace = Path(__file__).parent / "profiles" / "recordings" / "line_trace.json.gz"
    with RawEditor(command) as editor:
        editor.begin(folder)
        editor.open(uri_of(folder), TRAIN)
        still_right(editor, folder)
        assert said in editor.execute("profile", (folder / "run.py").as_uri())["message"]
        shown = editor.execute("import", str(trace))
        assert shown["summary"].startswith("step ")
        assert said.partition(";")[0] in shown["notes"][-1]
        still_right(editor, folder)
        assert editor.leave() == 0
