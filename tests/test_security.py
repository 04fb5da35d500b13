"""What a folder, a recording or a name that others made can have rooflint do: nothing."""

from __future__ import annotations

import ast
import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from h200_project import h200_project
from raw_editor import RawEditor
from recordings_by_hand import recording_of

import rooflint
from rooflint.model import LineCost
from rooflint.remap import follow_file
from rooflint_server.arguments import to_settings
from rooflint_server.session import Settings, is_inside

ROOT = Path(__file__).parent.parent
OURS = [
    *(ROOT / "analyzers" / "rooflint").rglob("*.py"),
    *(ROOT / "analyzers" / "rooflint_recorder").rglob("*.py"),
    *(ROOT / "server").rglob("*.py"),
]

TRAIN = """\
import torch
import helper

model = torch.nn.Linear(8, 8).cuda()
for step in range(100):
    loss = model(torch.ones(8, 8, device="cuda")).sum()
    helper.log(loss.item())
"""
ITEM_LINE = 6

AUDITED = """\
import sys

log = open(sys.argv.pop(1), "a", buffering=1)

def hook(event, arguments):
    if event in EVENTS:
        log.write(f"{event} {arguments[0]!r} {arguments[1:]!r}\\n")

EVENTS = {
    "open", "os.listdir", "os.scandir", "subprocess.Popen", "os.system", "os.exec", "os.fork",
    "os.posix_spawn", "os.spawn", "pty.spawn", "socket.connect", "socket.bind", "socket.sendto",
    "socket.getaddrinfo", "pickle.find_class", "ctypes.dlopen", "webbrowser.open", "urllib.Request",
}
sys.addaudithook(hook)

from rooflint.cli import main

sys.exit(main())
"""


# --- opening a folder ---------------------------------------------------------------------


def test_opening_a_folder_reads_nothing_outside_of_it_runs_nothing_and_asks_nobody(
    tmp_path: Path,
):
    """Links that lead out, settings above, and a recording that names others' files."""
    folder, outside = tmp_path / "around" / "project", tmp_path / "outside"
    for one in (folder, outside / "package"):
        one.mkdir(parents=True)
    secret = "def log(value):\n    print(value)\n"
    for name in ("secret.py", "package/__init__.py", "pyproject.toml", "trace.json"):
        (outside / name).write_text(secret if name.endswith(".py") else "")
    (tmp_path / "around" / "pyproject.toml").write_text("[tool.rooflint]\n")
    (tmp_path / "around" / ".gitignore").write_text("*\n")
    (folder / "helper.py").symlink_to(outside / "secret.py")
    (folder / "package").symlink_to(outside / "package")
    (folder / "pyproject.toml").write_text("[tool.rooflint]\n")
    (folder / "train.py").write_text(TRAIN + "import package\n")
    recorded_elsewhere(folder, outside)
    record = tmp_path / "record"
    with RawEditor(audited(record, "server")) as editor:
        editor.begin(folder)
        editor.tell("initialized")
        uri = (folder / "train.py").as_uri()
        editor.open(uri, (folder / "train.py").read_text())
        assert "waits for the GPU" in editor.hover(uri, ITEM_LINE)
        while not any(one["method"] == "rooflint/measured" for one in editor.told):
            assert not editor.logged()
            editor.hover(uri, ITEM_LINE)
        time.sleep(1)  # Meanwhile it is found out who uses whom.
        for command in ("page", "compare"):
            editor.execute(command, uri)
        asked = {"root": str(folder), "path": str(outside / "secret.py"), "line": 1}
        assert "no file of this project" in editor.execute("locate", asked)["message"]
        assert editor.leave() == 0
    assert list(foreign(record, folder)) == []


def test_check_and_profile_ask_nobody_on_a_network(tmp_path: Path):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "helper.py").write_text("import torch\nfor step in range(9):\n    torch.ones(1)\n")
    for command in (["check", "train.py"], ["profile", "helper.py"], ["doctor"]):
        record = tmp_path / command[0]
        subprocess.run(audited(record, *command), cwd=tmp_path, check=False, capture_output=True)
        events = {line.partition(" ")[0] for line in record.read_text().splitlines()}
        assert "open" in events
        assert not [event for event in events if event.startswith(("socket.", "urllib."))]


@pytest.mark.skipif(sys.platform != "linux", reason="needs network namespaces")
def test_all_works_where_there_is_no_network(tmp_path: Path):
    alone = ["unshare", "--net"]
    if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no network namespace may be made here")
    (tmp_path / "run.py").write_text("import torch\nfor step in range(9):\n    torch.ones(1)\n")
    with RawEditor([*alone, sys.executable, "-m", "rooflint", "server"]) as editor:
        editor.begin(tmp_path)
        uri = (tmp_path / "train.py").as_uri()
        editor.open(uri, TRAIN)
        assert "waits for the GPU" in editor.hover(uri, ITEM_LINE)
        done = editor.execute("profile", (tmp_path / "run.py").as_uri())
        assert Path(done["recording"]).is_dir()
        assert editor.leave() == 0


def audited(record: Path, *words: str) -> list[str]:
    """rooflint, with all that it opens, runs and connects to in a file."""
    return [sys.executable, "-c", AUDITED, str(record), *words]


def foreign(record: Path, folder: Path) -> Iterator[str]:
    """What was done that has to do with neither the folder nor Python's and our own modules."""
    own = {Path(each) for each in sys.path if each} | {Path(sys.prefix), Path(sys.base_prefix)}
    own |= {folder, ROOT, Path("/dev"), Path("/proc/self"), Path("/etc/localtime")}
    real = {one.resolve() for one in own}
    looked_at = False
    for line in record.read_text().splitlines():
        event, _, rest = line.partition(" ")
        if event not in ("open", "os.listdir", "os.scandir"):
            yield line
        elif path := re.match(r"'([^']+)'", rest):  # Otherwise one that is open already.
            place = Path(path[1]).resolve()
            looked_at |= folder in place.parents
            if not real & {place, *place.parents}:
                yield line
    assert looked_at, "nothing was looked at, so that this says nothing"


def recorded_elsewhere(folder: Path, outside: Path) -> None:
    """A recording that names, and links to, what is not the folder's."""
    recording = folder / ".rooflint" / "recordings" / "20260101-000000-train"
    (recording / "sources").mkdir(parents=True)
    trace = ROOT / "tests" / "profiles" / "recordings" / "line_trace.json.gz"
    (recording / "trace.json.gz").write_bytes(trace.read_bytes())
    named = [
        outside / "secret.py",
        folder / ".." / ".." / "outside" / "secret.py",
        folder / "helper.py",
        "/etc/passwd",
        "//server/share/secret.py",
        "a" * 5000,
    ]
    files = {str(path): {"sha256": "../../../../../outside/secret"} for path in named}
    for name in ("meta.json", "trace.json"):
        linked = folder / ".rooflint" / "recordings" / f"linked-{name}"
        linked.mkdir()
        (linked / "meta.json").write_text('{"format": 1}')
        (linked / name).unlink(missing_ok=True)
        (linked / name).symlink_to(outside / "trace.json")
    files[str(folder / "train.py")] = {"sha256": "0" * 64}
    (recording / "meta.json").write_text(json.dumps({"format": 1, "files": files}))


def test_paths_with_detours_are_where_they_lead():
    assert is_inside("/project/a.py", "/project")
    assert not is_inside("/project/../secret/a.py", "/project")
    assert not is_inside("/project2/a.py", "/project")


def test_a_path_on_a_server_is_not_asked_for_because_a_recording_names_it(
    monkeypatch: pytest.MonkeyPatch,
):
    """On Windows asking for it logs in there, with the user's name and password's hash."""
    asked: list[str] = []
    real = Path.exists

    def exists(path: Path, **options: Any) -> bool:
        asked.append(str(path))
        return real(path, **options)

    monkeypatch.setattr(Path, "exists", exists)
    names = [r"\\evil\share\train.py", "//evil/share/train.py", "/home/other/train.py"]
    lines = [LineCost(name, 1, forward_us=1.0) for name in names]
    report = rooflint.judge(recording_of(*lines))
    follow_file(report, "/home/user/train.py", "x = 1\n")
    assert asked and not [path for path in asked if "evil" in path]


# --- a workspace that is not trusted ------------------------------------------------------


def test_in_a_workspace_that_is_not_trusted_nothing_is_run_and_no_setting_names_a_program(
    tmp_path: Path,
):
    trap, sprung = tmp_path / "python", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    file = tmp_path / "train.py"
    file.write_text(TRAIN)
    for trusted, refused in ((False, True), (True, False)):
        with RawEditor() as editor:
            options = {"trusted": trusted, "rooflint": {"python": str(trap)}}
            editor.begin(tmp_path, initializationOptions=options)
            settings = {"rooflint": {"python": str(trap)}}
            editor.tell("workspace/didChangeConfiguration", settings=settings)
            for asked in (file.as_uri(), {"uri": file.as_uri(), "python": str(trap)}):
                message = editor.execute("profile", asked)["message"]
                assert ("until you trust this workspace" in message) is refused
            assert sprung.exists() is not refused
            assert editor.leave() == 0


def test_in_a_workspace_that_is_not_trusted_no_recording_is_read_by_itself(tmp_path: Path):
    recorded_elsewhere(tmp_path, tmp_path)
    uri = (tmp_path / "train.py").as_uri()
    took_s = 0.0
    for trusted in (True, False):
        with RawEditor() as editor:
            editor.begin(tmp_path, initializationOptions={"trusted": trusted})
            editor.tell("initialized")
            began_s = time.monotonic()
            editor.open(uri, TRAIN)
            while "waits for the GPU" not in editor.hover(uri, ITEM_LINE):
                assert not editor.logged()
            while trusted and not told_what_was_measured(editor):
                editor.hover(uri, ITEM_LINE)
            took_s = took_s or time.monotonic() - began_s
            while not trusted and time.monotonic() < began_s + 2 * took_s:
                editor.hover(uri, ITEM_LINE)
            assert bool(told_what_was_measured(editor)) is trusted
            assert editor.leave() == 0


def told_what_was_measured(editor: RawEditor) -> list[object]:
    return [one for one in editor.told if one["method"] == "rooflint/measured"]


def test_in_a_workspace_that_is_not_trusted_its_python_is_not_even_known():
    for trusted, python in ((True, "/evil/python"), (False, None)):
        settings = to_settings({"python": "/evil/python"}, Settings(), trusted=trusted)
        assert settings.python == python


def test_the_extension_says_which_settings_a_workspace_may_not_have():
    """All that end up in a command line."""
    package = json.loads((ROOT / "package.json").read_text())
    known = package["contributes"]["configuration"]["properties"]
    programs = {"rooflint.python", "rooflint.serverPython"}
    programs |= {name for name in known if name.startswith("rooflint.profile.")}
    untrusted = package["capabilities"]["untrustedWorkspaces"]
    assert set(untrusted["restrictedConfigurations"]) == programs
    assert all(known[name]["scope"] == "machine-overridable" for name in programs)
    runs = [one for one in package["contributes"]["commands"] if "rofil" in one["command"]]
    assert len(runs) == 3 and all(one["enablement"] == "isWorkspaceTrusted" for one in runs)


def test_the_editor_is_shown_what_is_going_to_be_run(tmp_path: Path):
    file = tmp_path / "a file.py"
    file.write_text("print()\n")
    with RawEditor() as editor:
        editor.begin(tmp_path)
        asked = {"uri": file.as_uri(), "python": "/no/python", "args": ["--lr", "1 2"]}
        editor.send(
            id=1,
            method="workspace/executeCommand",
            params={"command": "rooflint.server.profile", "arguments": [asked], "workDoneToken": 7},
        )
        shown = editor.receive()
        while shown.get("method") != "$/progress":
            shown = editor.receive()
        assert shown["params"]["value"]["kind"] == "begin"
        assert shown["params"]["value"]["message"] == f"/no/python '{file}' --lr '1 2'"


# --- our own source -----------------------------------------------------------------------

SHELLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
READERS_THAT_RUN = {"pickle", "cPickle", "dill", "marshal", "shelve", "yaml", "joblib"}
NETWORK = {"urllib.request", "http", "http.client", "requests", "ftplib", "smtplib", "telnetlib"}
PICKLES_OF_OUR_OWN = {"reading.py", "kept.py", "told.py", "written.py"}
"""Between our own processes, and in the user's own cache; never of a recording or a project."""
RUNS_THE_USERS_FILE = {"program.py", "notebook.py"}
MAKES_CLASSES = {"plain.py"}
"""Out of the names of our own fields, when it is imported, as `dataclasses` does."""
MAKES_TABLES = ROOT / "analyzers" / "rooflint" / "tables"
"""Run by hand to measure torch; never by what is installed."""


def test_no_shell_no_code_from_data_and_no_network_in_our_source():
    files = [file for file in OURS if MAKES_TABLES not in file.parents]
    assert len(files) > 200
    assert [found for file in files for found in dangers(file)] == []


def dangers(file: Path) -> Iterator[str]:
    runs_files = file.parent.name == "rooflint_recorder" and file.name in RUNS_THE_USERS_FILE
    for node in ast.walk(ast.parse(file.read_bytes())):
        found = False
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = {each.name for each in node.names}
            if isinstance(node, ast.ImportFrom):
                names |= {node.module or ""} | {f"{node.module}.{name}" for name in names}
            mine = {"pickle"} if file.name in PICKLES_OF_OUR_OWN else set[str]()
            found = bool((names - mine) & (READERS_THAT_RUN | NETWORK))
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            found = called in SHELLS or called.startswith(("os.exec", "os.spawn"))
            made = called == "exec" and file.name in MAKES_CLASSES
            found |= called in ("eval", "exec", "__import__") and not (runs_files or made)
            found |= any(keyword.arg in ("shell", "allow_pickle") for keyword in node.keywords)
        if found:
            yield f"{file}:{node.lineno} {ast.unparse(node)}"


def test_the_extension_starts_programs_without_a_shell():
    for file in (ROOT / "extension" / "src").glob("*.ts"):
        text = file.read_text()
        assert not re.search(r"shell\s*:|createTerminal|\beval\(|new Function", text)
        for names in re.findall(r'import \{([^}]*)\} from "node:child_process"', text):
            assert {name.strip() for name in names.split(",")} <= {"execFile", "spawn"}
        assert not re.search(r'from "node:(https?|net|dgram|tls)"|\bfetch\(|WebSocket', text)
        assert "telemetry" not in text.lower()


def test_a_name_that_lies_in_a_folder_one_stands_in_is_not_imported_or_run(tmp_path: Path):
    sprung = tmp_path / "sprung"
    others = {"isal", "msgspec", "ncu_report", "pandas", "nvtx", "tomli", "torch"}
    others |= {"pygls", "lsprotocol"}
    # Python itself needs some before it has come to rooflint.
    needed = "import runpy, pkgutil, traceback, rooflint, sys; print(*sys.modules)"
    first = subprocess.check_output([sys.executable, "-c", needed], text=True).split()
    for name in (others | sys.stdlib_module_names) - {*first}:
        (tmp_path / f"{name}.py").write_text(f"open({str(sprung)!r}, 'a').write({name!r})\n")
    for name in ("ncu", "nvidia-smi"):
        (tmp_path / name).write_text(f"#!/bin/sh\ntouch {sprung}\n")
        (tmp_path / name).chmod(0o755)
    reports = ROOT / "tests" / "profiles" / "recordings" / "train_h200"
    env = {**os.environ, "PATH": f".:{os.environ['PATH']}"}
    (tmp_path / "train.py").write_text(TRAIN)
    for words in (["check", "train.py"], ["report", str(reports)], ["doctor"]):
        command = [sys.executable, "-m", "rooflint", *words]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=False)
        assert done.stdout and b"Traceback" not in done.stderr
        assert not sprung.exists(), sprung.read_text()


# --- names that others chose --------------------------------------------------------------

EVIL = "evil` ![y] <img src=q> https://evil.example \u202e\x1b[0m](command:rm) [x](command:rm)"


def test_whatever_kernels_are_called_no_link_picture_or_control_character_reaches_the_editor(
    tmp_path: Path,
):
    """Hovers are Markdown, in which the only links are ours; all else is text."""
    file, text = h200_project(tmp_path)
    (trace,) = tmp_path.glob(".rooflint/recordings/*/trace.json.gz")
    known = json.loads(gzip.decompress(trace.read_bytes()))
    for event in known["traceEvents"]:
        if event.get("cat") in ("kernel", "gpu_memcpy"):
            event["name"] = EVIL
    trace.write_bytes(gzip.compress(json.dumps(known).encode(), 1))
    with RawEditor() as editor:
        options = {"heat": True, "rooflineCommand": "rooflint.showRoofline"}
        editor.begin(tmp_path, initializationOptions=options)
        uri = file.as_uri()
        editor.open(uri, text)
        while not any(one["method"] == "rooflint/measured" for one in editor.told):
            editor.hover(uri, 0)
        lines = range(len(text.splitlines()))
        cards = [card for line in lines if (card := editor.hover(uri, line))]
        place = {"line": 0, "character": 0}
        whole = {"start": place, "end": {"line": len(lines), "character": 0}}
        asked = {"textDocument": {"uri": uri}, "range": whole}
        lenses = editor.ask("textDocument/codeLens", textDocument={"uri": uri})
        hints = editor.ask("textDocument/inlayHint", **asked)
        assert editor.leave() == 0
    assert sum("evil" in card for card in cards) > 3  # They do name kernels.
    for card in cards:
        links = re.findall(r"(?<!\\)\]\((.*?)\)", re.sub(r"`[^`]*`", "", card))
        assert all(link.startswith("command:rooflint.showRoofline?") for link in links), card
        bare = re.sub(r"`[^`]*`", "", card)
        assert not re.search(r"(?<!\\)<|(?<!\\)!\[|https://evil", bare), card
    for shown in (*cards, json.dumps([lenses, hints, editor.told], ensure_ascii=False)):
        assert "\x1b" not in shown and "\u202e" not in shown
