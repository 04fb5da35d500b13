"""The server as an editor meets it: a process of its own, spoken to on stdin and stdout."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import lzma
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Semaphore
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_lsp
from h200_project import h200_project
from lsprotocol import types as lsp
from profiles.trace_maker import MAIN, TraceMaker
from pygls.exceptions import JsonRpcException
from pytest_lsp import (
    ClientServerConfig,
    LanguageClient,
    client_capabilities,
    make_test_lsp_client,
)
from raw_editor import RawEditor

import rooflint
from rooflint.model import Report
from rooflint_server import analysis, progress, server, session, to_lsp
from rooflint_server.document import Document
from rooflint_server.session import Session


def make_editor() -> LanguageClient:
    """Keeps all that is published: of two in one breath, `wait_for_notification` misses one."""
    editor: Any = make_test_lsp_client()
    editor.publications = asyncio.Queue()
    features = editor.protocol.fm.features
    keep = features[lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS]

    def publish_diagnostics(params: lsp.PublishDiagnosticsParams) -> None:
        keep(params)
        editor.publications.put_nowait(params)

    features[lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS] = publish_diagnostics
    editor.feature(lsp.CLIENT_REGISTER_CAPABILITY)(lambda params: None)
    editor.refreshed = []
    for refresh in (lsp.WORKSPACE_CODE_LENS_REFRESH, lsp.WORKSPACE_INLAY_HINT_REFRESH):
        editor.feature(refresh)(lambda params, refresh=refresh: editor.refreshed.append(refresh))
    return editor


SERVER = ClientServerConfig(
    server_command=[sys.executable, "-m", "rooflint", "server"], client_factory=make_editor
)

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

SMALL_RUN = """\
import torch

print("hello from the script")
model = torch.nn.Linear(256, 256)
for step in range(20):
    loss = model(torch.ones(256, 256)).sum()
    loss.backward()
print("done")
"""

ENDLESS_RUN = """\
import itertools
import torch

a = torch.ones(64, 64)
for step in itertools.count():
    b = a @ a
    if step == 20:
        print("20 steps", flush=True)
"""

PUSHING = client_capabilities("visual-studio-code")
assert PUSHING.workspace
PUSHING.workspace.inlay_hint = lsp.InlayHintWorkspaceClientCapabilities(refresh_support=True)


@pytest_lsp.fixture(config=SERVER)
async def client(lsp_client: LanguageClient, tmp_path: Path):
    await begin(lsp_client, tmp_path, PUSHING)
    yield
    await lsp_client.shutdown_session()


@pytest_lsp.fixture(config=SERVER)
async def pulling(lsp_client: LanguageClient, tmp_path: Path):
    can = client_capabilities("neovim@0.11")
    assert can.workspace
    can.workspace.diagnostics = lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    await begin(lsp_client, tmp_path, can)
    yield
    await lsp_client.shutdown_session()


@pytest_lsp.fixture(config=SERVER)
async def drawing(lsp_client: LanguageClient, tmp_path: Path):
    """An editor that marks lines by what they cost."""
    editor: Any = lsp_client
    editor.heat = []
    editor.feature("rooflint/heat")(lambda params: editor.heat.append(plain(params)))
    await begin(lsp_client, tmp_path, PUSHING, {"heat": True})
    yield
    await lsp_client.shutdown_session()


@pytest_lsp.fixture(config=SERVER)
async def half_pulling(lsp_client: LanguageClient, tmp_path: Path):
    """Neovim 0.11 as it is: it asks after edits, and cannot be told that a profile has ended."""
    await begin(lsp_client, tmp_path, client_capabilities("neovim@0.11"))
    yield
    await lsp_client.shutdown_session()


# --- diagnostics --------------------------------------------------------------------------


async def test_a_wait_is_underlined_where_it_stands(client: LanguageClient, tmp_path: Path):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    (found,) = await published(client, uri, 1)
    assert under(TRAIN, found.range) == "loss.item()"
    assert (found.source, found.severity) == ("rooflint", lsp.DiagnosticSeverity.Warning)
    assert isinstance(found.code, str)
    assert found.related_information
    assert {place.location.uri for place in found.related_information} == {uri}


async def test_diagnostics_move_with_the_text_above_them(client: LanguageClient, tmp_path: Path):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    await published(client, uri, 1)
    change(client, uri, 2, (0, 0), (0, 0), "# one\n# two\n")
    (found,) = await published(client, uri, 2)
    assert found.range.start.line == ITEM_LINE + 2


HELPER = """\
def accuracy(out):
    return out.sum().item()
"""

CALLER = """\
import torch
from helper import accuracy

model = torch.nn.Linear(8, 8).cuda()
for step in range(100):
    accuracy(model(torch.ones(8, 8, device="cuda")))
"""


async def test_a_helper_is_judged_by_the_file_that_calls_it(client: LanguageClient, tmp_path: Path):
    (tmp_path / "train.py").write_text(CALLER)
    (tmp_path / "helper.py").write_text(HELPER)
    uri = open_text(client, tmp_path / "helper.py", HELPER)
    while not (found := await published(client, uri, 1)):
        pass  # It is looked at alone first.
    assert under(HELPER, found[0].range) == "out.sum().item()"
    assert "train.py:5" in found[0].message
    places = found[0].related_information or []
    assert any(place.location.uri.endswith("train.py") for place in places)


async def test_an_edit_of_one_open_file_reaches_another(client: LanguageClient, tmp_path: Path):
    on_cpu = CALLER.replace(".cuda()", "").replace(', device="cuda"', "")
    for name in ("train.py", "helper.py"):
        (tmp_path / name).touch()
    train = open_text(client, tmp_path / "train.py", on_cpu)
    helper = open_text(client, tmp_path / "helper.py", HELPER)
    assert await published(client, train, 1) == []
    assert await published(client, helper, 1) == []
    change(client, train, 2, (0, 0), (len(on_cpu.splitlines()), 0), CALLER)
    while not await published(client, helper, 1):
        pass


async def test_what_others_change_on_disk_is_noticed_with_no_edit(
    client: LanguageClient, tmp_path: Path
):
    caller = tmp_path / "train.py"
    caller.write_text(CALLER)
    helper = open_text(client, tmp_path / "helper.py", HELPER)
    while not await published(client, helper, 1):
        pass
    caller.unlink()
    gone = lsp.FileEvent(caller.as_uri(), lsp.FileChangeType.Deleted)
    client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([gone]))
    assert await published(client, helper, 1) == []


async def test_edits_that_were_not_saved_end_when_the_file_is_closed(
    client: LanguageClient, tmp_path: Path
):
    caller = tmp_path / "train.py"
    caller.write_text("import torch\n")
    (tmp_path / "helper.py").touch()
    helper = open_text(client, tmp_path / "helper.py", HELPER)
    train = open_text(client, caller, CALLER)
    while not await published(client, helper, 1):
        pass
    closed = lsp.TextDocumentIdentifier(train)
    client.text_document_did_close(lsp.DidCloseTextDocumentParams(closed))
    while await published(client, helper, 1):
        pass


async def test_a_mended_line_loses_its_diagnostic(client: LanguageClient, tmp_path: Path):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    await published(client, uri, 1)
    change(client, uri, 2, (ITEM_LINE, 0), (ITEM_LINE + 1, 0), "        total += 1\n")
    assert await published(client, uri, 2) == []


async def test_columns_are_utf_16_units_in_both_directions(client: LanguageClient, tmp_path: Path):
    text = TRAIN.replace("total += loss.item()", 'x = "😋", loss.item()')
    text = text.replace("    ", "\t")
    uri = open_text(client, tmp_path / "train.py", text)
    (found,) = await published(client, uri, 1)
    start = len('\t\tx = "😋", ') + 1  # The emoji is one character and two units.
    assert found.range.start == lsp.Position(ITEM_LINE, start)
    assert found.range.end == lsp.Position(ITEM_LINE, start + len("loss.item()"))
    change(client, uri, 2, (ITEM_LINE, start), (ITEM_LINE, start), '"🙂", ')
    (found,) = await published(client, uri, 2)
    assert found.range.start == lsp.Position(ITEM_LINE, start + len('"🙂", ') + 1)


async def test_a_burst_of_edits_ends_with_its_last(client: Any, tmp_path: Path):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    await published(client, uri, 1)
    for version in range(2, 42):
        change(client, uri, version, (0, 0), (0, 0), "# one more\n")
    versions: list[int | None] = []
    while versions[-1:] != [41]:
        versions.append((await client.publications.get()).version)
    assert versions == sorted(versions)
    assert client.diagnostics[uri][0].range.start.line == ITEM_LINE + 40


async def test_a_file_that_is_broken_keeps_its_other_findings(
    client: LanguageClient, tmp_path: Path
):
    uri = open_text(client, tmp_path / "train.py", TRAIN + "\ndef broken(:\n    '''\x00")
    (found,) = await published(client, uri, 1)
    assert found.range.start.line == ITEM_LINE


async def test_a_closed_file_loses_its_diagnostics(client: LanguageClient, tmp_path: Path):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    await published(client, uri, 1)
    client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    assert await published(client, uri, 1) == []


async def test_settings_of_the_project_are_read_again_on_save(
    client: LanguageClient, tmp_path: Path
):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    (found,) = await published(client, uri, 1)
    (tmp_path / "pyproject.toml").write_text(f'[tool.rooflint]\nignore = ["{found.code}"]\n')
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    assert await published(client, uri, 1) == []


async def test_nothing_is_said_of_a_file_that_the_settings_leave_out(
    client: LanguageClient, tmp_path: Path
):
    (tmp_path / "pyproject.toml").write_text('[tool.rooflint]\nexclude = ["third_party/"]\n')
    (tmp_path / "third_party").mkdir()
    uri = open_text(client, tmp_path / "third_party/train.py", TRAIN)
    assert await published(client, uri, 1) == []


async def test_settings_that_make_no_sense_are_told_and_left_aside(
    client: LanguageClient, tmp_path: Path
):
    (tmp_path / "pyproject.toml").write_text("[tool.rooflint]\nspeed = 9\n")
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    assert len(await published(client, uri, 1)) == 1
    assert "speed" in client.log_messages[0].message


async def test_a_windows_file_keeps_its_name(client: LanguageClient):
    uri = "file:///c%3A/Users/me/train.py"
    client.text_document_did_open(
        lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, TRAIN))
    )
    (found,) = await published(client, uri, 1)
    assert found.related_information
    assert {place.location.uri for place in found.related_information} == {uri}


async def test_an_editor_that_pulls_is_not_pushed_to(pulling: LanguageClient, tmp_path: Path):
    uri = open_text(pulling, tmp_path / "train.py", TRAIN)
    (found,) = await pulled(pulling, uri)
    assert under(TRAIN, found.range) == "loss.item()"
    change(pulling, uri, 2, (0, 0), (0, 0), "\n")
    (found,) = await pulled(pulling, uri)
    assert found.range.start.line == ITEM_LINE + 1
    await execute(pulling, "rooflint.server.clear")
    assert pulling.diagnostic_refresh_count == 1
    assert pulling.diagnostics == {}


async def test_an_editor_that_cannot_be_told_to_pull_again_is_pushed_to(
    half_pulling: LanguageClient, tmp_path: Path
):
    uri = open_text(half_pulling, tmp_path / "train.py", TRAIN)
    assert len(await published(half_pulling, uri, 1)) == 1
    with pytest.raises(JsonRpcException, match="Method Not Found"):
        await pulled(half_pulling, uri)


async def test_columns_are_what_the_editor_asked_for(pulling: LanguageClient, tmp_path: Path):
    text = TRAIN.replace("total += loss.item()", 'x = "😋", loss.item()')
    uri = open_text(pulling, tmp_path / "train.py", text)
    (found,) = await pulled(pulling, uri)
    # Neovim 0.11 asks for UTF-8 first.
    assert found.range.start.character == len('        x = "😋", '.encode())


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "vscode-notebook-cell:/a.ipynb#W0"])
async def test_other_documents_do_no_harm(client: LanguageClient, tmp_path: Path, uri: str):
    client.text_document_did_open(
        lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, TRAIN))
    )
    await hover(client, uri, (0, 0))
    real = open_text(client, tmp_path / "train.py", TRAIN)
    assert len(await published(client, real, 1)) == 1


# --- on a line ----------------------------------------------------------------------------


async def test_a_card_explains_a_finding(client: LanguageClient, tmp_path: Path):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    (found,) = await published(client, uri, 1)
    card = await hover(client, uri, (ITEM_LINE, 18))
    assert card is not None
    assert card.startswith(f"**{found.code}** · ")
    assert "What it costs: Profile This File" in card


async def test_a_line_with_nothing_to_say_has_no_card(client: LanguageClient, tmp_path: Path):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    assert await hover(client, uri, (0, 3)) is None
    assert await hover(client, uri, (500, 3)) is None
    assert await hover(client, (tmp_path / "never_opened.py").as_uri(), (0, 0)) is None


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
async def test_a_quick_fix_leaves_nothing_to_fix(
    client: LanguageClient, tmp_path: Path, ending: str
):
    train = TRAIN.replace("\n", ending)
    uri = open_text(client, tmp_path / "train.py", train)
    (found,) = await published(client, uri, 1)
    fix = (await actions(client, uri, found))[0]
    assert fix.title == "Add it up on the GPU, read it once after the loop"
    assert fix.is_preferred
    assert list(fix.diagnostics or ()) == [found]
    text = apply(train, edits_of(fix))
    assert text.count("\n") == text.count(ending) == train.count(ending) + 1
    compile(text, "train.py", "exec")
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(2, uri),
            [lsp.TextDocumentContentChangeWholeDocument(text)],
        )
    )
    assert found.code not in {each.code for each in await published(client, uri, 2)}


async def test_a_rule_is_ignored_by_a_comment_on_its_line(client: LanguageClient, tmp_path: Path):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    (found,) = await published(client, uri, 1)
    ignore = (await actions(client, uri, found))[-1]
    line = apply(TRAIN, edits_of(ignore)).splitlines()[ITEM_LINE]
    assert line == f"        total += loss.item()  # rooflint: ignore[{found.code}]"


async def test_no_fix_is_offered_elsewhere(client: LanguageClient, tmp_path: Path):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    await published(client, uri, 1)
    assert not await client.text_document_code_action_async(asked_at(uri, (0, 0), (1, 0)))
    everywhere = asked_at(uri, (0, 0), (99, 0), only=["refactor"])
    assert not await client.text_document_code_action_async(everywhere)


# --- profiles -----------------------------------------------------------------------------


async def test_a_profile_runs_to_its_end_and_its_numbers_stand_on_their_lines(
    client: LanguageClient, tmp_path: Path
):
    file = tmp_path / "small.py"
    file.write_text(SMALL_RUN)
    uri = open_text(client, file, SMALL_RUN)
    assert await published(client, uri, 1) == []
    heard, known = listen(client), listen_to_measured(client)
    answer = await execute(client, "rooflint.server.profile", {"uri": uri})
    assert Path(answer["recording"]).is_dir()
    assert answer["summary"].startswith("step ")
    assert not answer["cancelled"]
    assert known == [(str(tmp_path), answer["summary"])]
    assert "hello from the script" in "".join(heard)
    (progress,) = client.progress_reports.values()
    kinds = [value.kind for value in progress]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert set(kinds[1:-1]) == {"report"}
    card = await hover(client, uri, (5, 8))
    assert card is not None
    assert "| CPU time | " in card


async def test_a_reopened_project_shows_its_last_profile(client: LanguageClient, tmp_path: Path):
    file = tmp_path / "small.py"
    file.write_text(SMALL_RUN)
    await execute(client, "rooflint.server.profile", {"uri": file.as_uri(), "module": "small"})
    tomorrow = make_editor()
    await tomorrow.start_io(*SERVER.server_command)
    try:
        await begin(tomorrow, tmp_path, PUSHING)
        uri = open_text(tomorrow, file, SMALL_RUN)
        while not await hover(tomorrow, uri, (5, 8)):
            await published(tomorrow, uri, 1)
        await tomorrow.shutdown_session()
    finally:
        await tomorrow.stop()


async def test_a_profile_from_a_terminal_is_shown(client: LanguageClient, tmp_path: Path):
    file, text = h200_project(tmp_path)
    recording = tmp_path / ".rooflint" / "recordings" / "h200"
    (recording / "meta.json").rename(tmp_path / "not yet")
    uri = open_text(client, file, text)
    assert 34 not in {each.range.start.line + 1 for each in await published(client, uri, 1)}
    (tmp_path / "not yet").rename(recording / "meta.json")
    created = lsp.FileEvent((recording / "meta.json").as_uri(), lsp.FileChangeType.Created)
    client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([created]))
    assert 34 in {each.range.start.line + 1 for each in await published(client, uri, 1)}


async def test_a_recording_that_is_shown_when_its_window_closes_is_read_again_when_its_script_ends(
    client: LanguageClient, tmp_path: Path
):
    file, text = h200_project(tmp_path)
    meta = tmp_path / ".rooflint" / "recordings" / "h200" / "meta.json"
    known = listen_to_measured(client)

    def write(what: str) -> None:
        meta.write_text(what)
        changed = lsp.FileEvent(meta.as_uri(), lsp.FileChangeType.Changed)
        client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([changed]))

    open_text(client, file, text)
    while not known:
        await asyncio.sleep(0.01)
    at_close = json.loads(meta.read_text())
    at_end = json.dumps({**at_close, "window": {"step_count": 6, "plain_step_us": 1234.0}})
    write(at_end)
    while len(known) < 2:
        await asyncio.sleep(0.01)
    write(at_end)
    await asyncio.sleep(1.0)
    assert known[1][1] != known[0][1]
    assert "1.23 ms" in (known[1][1] or "")
    assert len(known) == 2


@pytest.mark.parametrize("way", ["the progress bar", "the request"])
async def test_a_second_profile_is_refused_and_a_cancel_keeps_what_the_first_recorded(
    client: LanguageClient, tmp_path: Path, way: str
):
    file = tmp_path / "endless.py"
    file.write_text(ENDLESS_RUN)
    heard = listen(client)
    client.progress_reports["the token"] = []
    running = asyncio.ensure_future(
        client.protocol.send_request_async(
            lsp.WORKSPACE_EXECUTE_COMMAND,
            lsp.ExecuteCommandParams(
                "rooflint.server.profile", [file.as_uri()], work_done_token="the token"
            ),
            msg_id="the request",
        )
    )
    await client.wait_for_notification(lsp.PROGRESS)
    with pytest.raises(JsonRpcException, match=r"endless\.py is being profiled: wait"):
        await execute(client, "rooflint.server.profile", file.as_uri())
    while "20 steps" not in "".join(heard):
        await client.wait_for_notification("rooflint/output")
    if way == "the request":
        client.cancel_request(lsp.CancelParams("the request"))
    else:
        client.window_work_done_progress_cancel(lsp.WorkDoneProgressCancelParams("the token"))
    answer = await asyncio.wait_for(running, 100)
    assert answer["cancelled"]
    assert Path(answer["recording"]).is_dir()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "give one argument"),
        ([7], "give one argument"),
        ([{}], "the file is missing"),
        ([{"uri": "file:///no/such/file.py"}], "save it first"),
        ([{"uri": "untitled:Untitled-1"}], "save it first"),
        ([{"uri": "{file}", "args": "--lr 1"}], "args must be a list of strings"),
        ([{"uri": "{file}", "steps": 0}], "steps must be at least 1"),
        ([{"uri": "{file}", "steps": True}], "steps must be a whole number"),
        ([{"uri": "{file}", "seconds": "5"}], "seconds must be a number"),
        ([{"uri": "{file}", "ncuBudget": "5"}], "ncuBudget must be a number"),
        ([{"uri": "{file}", "stopAfter": 1}], "stopAfter must be true or false"),
        ([{"uri": "{file}", "cwd": "/no/such/folder"}], "is not a folder"),
        ([{"uri": "{file}", "env": {"A": 1}}], "env must map names to strings"),
        ([{"uri": "{file}", "speed": 9}], "no option 'speed'"),
        ([{"uri": "{file}", "python": "/no/such/python"}], "python"),
    ],
)
async def test_arguments_that_do_not_fit_get_a_sentence(
    client: LanguageClient, tmp_path: Path, arguments: list[Any], sentence: str
):
    file = tmp_path / "small.py"
    file.write_text(SMALL_RUN)
    if arguments and isinstance(arguments[0], dict) and arguments[0].get("uri") == "{file}":
        arguments = [{**arguments[0], "uri": file.as_uri()}]
    with pytest.raises(JsonRpcException, match=sentence) as caught:
        await execute(client, "rooflint.server.profile", *arguments)
    assert "Traceback" not in str(caught.value)


async def test_the_numbers_of_a_gpu_run_stand_on_its_lines(client: LanguageClient, tmp_path: Path):
    file, text = h200_project(tmp_path)
    uri = open_text(client, file, text)
    found: dict[int, lsp.Diagnostic] = {}
    while 34 not in found:
        found = {each.range.start.line + 1: each for each in await published(client, uri, 1)}
    card = await hover(client, uri, (33, 8))
    # An FP32 product: 12 steps of 0.51 ms forward and 0.79 ms backward, a fifth of the GPU's time.
    assert card is not None
    assert card.startswith("**compute-bound**")
    assert "| GPU time | 509 µs forward, 787 µs backward | measured |" in card
    assert "| occupancy | – | no hardware counters in this recording |" in card
    assert found[34].message.startswith("509 µs forward + 787 µs backward")
    assert found[34].severity == lsp.DiagnosticSeverity.Information
    assert 48 not in found  # under a twentieth of the GPU's time
    # `total += loss.item()` blocks for a thousandth of a step in which the GPU is idle anyway.
    assert found[65].severity == lsp.DiagnosticSeverity.Hint
    assert "— blocks 18 µs a step (under 0.1 %): free here" in found[65].message
    # What the user has set stays, whatever was measured.
    (tmp_path / "pyproject.toml").write_text('[tool.rooflint.severity]\nitem-in-loop = "error"\n')
    client.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
    (set_by_user,) = (
        each for each in await published(client, uri, 1) if each.code == "item-in-loop"
    )
    assert set_by_user.severity == lsp.DiagnosticSeverity.Error
    # An edit above moves the numbers, an edit of the line makes them stale.
    change(client, uri, 2, (0, 0), (0, 0), "# one\n")
    assert await hover(client, uri, (34, 8)) == card
    change(client, uri, 3, (34, 0), (34, 0), " ")
    stale = await hover(client, uri, (34, 8))
    assert stale is not None
    assert "stale: the line was changed since it was measured" in stale


async def test_what_the_steps_and_functions_cost_stands_above_them(
    client: LanguageClient, tmp_path: Path
):
    uri = await open_example(client, tmp_path, "train_h200")
    lenses = await lenses_of(client, uri)
    # 14 waits in the 3 recorded steps, and a step of 17.2 ms without the recorder.
    assert lenses[83] == ["step 17.2 ms · GPU busy 93 % · 4.67 syncs", "profile again"]
    # `Block.forward`: lines 55 to 58, of which 56 alone is 18 % of the GPU's time.
    assert lenses[53] == ["GPU 7.03 ms a step (44 %) on its own lines"]
    assert set(lenses) == {44, 53, 68, 83}  # `Tokens.__getitem__` and `main` hold under 5 %
    # What is above moves them; a measured line that is changed is told of.
    change(client, uri, 2, (55, 16), (55, 16), "1 * ")
    change(client, uri, 3, (0, 0), (0, 0), "# one\n")
    lenses = await lenses_of(client, uri)
    assert set(lenses) == {45, 54, 69, 84}
    assert lenses[84][0].endswith("before 1 measured line changed")
    client.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams({"rooflint": {"codeLens": False}})
    )
    assert await lenses_of(client, uri) == {}


async def test_what_lines_cost_stands_at_their_ends(client: LanguageClient, tmp_path: Path):
    uri = await open_example(client, tmp_path, "train_h200")
    hints = await hints_of(client, uri)
    assert hints[55] == "GPU 2.94 ms (18 %)"
    assert hints[91] == "GPU 303 µs (1.9 %) · GPU idles 287 µs"
    assert 92 not in hints  # `loss.item()` waits for 0.07 % of the step
    change(client, uri, 2, (55, 16), (55, 16), "1 * ")
    change(client, uri, 3, (0, 0), (0, 0), "# one\n")
    assert (await hints_of(client, uri))[56] == "GPU 2.94 ms (18 %) (stale)"
    client.workspace_did_change_configuration(
        lsp.DidChangeConfigurationParams({"rooflint": {"inlayHints": False}})
    )
    assert await hints_of(client, uri) == {}


async def test_where_nothing_was_measured_nothing_stands_above_or_behind_lines(
    client: LanguageClient, tmp_path: Path
):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    assert (await lenses_of(client, uri), await hints_of(client, uri)) == ({}, {})


async def test_the_editor_is_told_to_ask_again_once_something_was_measured(
    client: Any, tmp_path: Path
):
    uri = await open_example(client, tmp_path, "train_h200")
    assert await hints_of(client, uri)
    assert set(client.refreshed) == {"workspace/codeLens/refresh", "workspace/inlayHint/refresh"}
    await execute(client, "rooflint.server.clear")
    assert client.refreshed[2:] == client.refreshed[:2]
    assert (await lenses_of(client, uri), await hints_of(client, uri)) == ({}, {})


async def test_an_edited_file_whose_measured_text_is_lost_says_since_when(
    client: LanguageClient, tmp_path: Path
):
    folder = tmp_path / ".rooflint" / "recordings" / "train_h200"
    example_project("train_h200", tmp_path)
    for source in (folder / "sources").iterdir():
        source.unlink()
    text = (tmp_path / "train.py").read_text()
    uri = open_text(client, tmp_path / "train.py", "# another\n" + text)
    ((line, (said,)),) = (await lenses_once_measured(client, uri)).items()
    assert line == 0
    assert said.startswith("measured 29 Nov ")
    assert said.endswith("was not kept: profile again")
    assert await hints_of(client, uri) == {}


async def test_each_file_shows_the_last_recording_that_has_it(
    client: LanguageClient, tmp_path: Path
):
    train = await open_example(client, tmp_path, "train_h200")
    fixed = await open_example(client, tmp_path, "train_fixed_h200")
    assert (await lenses_of(client, fixed))[76][0] == "step 12.3 ms · GPU busy 29 %"
    assert (await lenses_of(client, train))[83][0].startswith("step 17.2 ms")


async def test_a_renamed_file_keeps_its_numbers_even_when_it_is_edited(
    client: LanguageClient, tmp_path: Path
):
    file = example_project("train_h200", tmp_path)
    recorded_here(tmp_path, file)
    file.rename(tmp_path / "moved.py")
    text = (tmp_path / "moved.py").read_text()
    edited = "# moved\n" + text.replace("import time\n", "import os, time\n")
    uri = open_text(client, tmp_path / "moved.py", edited)
    lenses = await lenses_once_measured(client, uri)
    assert lenses[84][0].startswith("step 17.2 ms")
    other = open_text(client, tmp_path / "other.py", TRAIN)
    assert await lenses_of(client, other) == {}


async def test_an_editor_that_draws_heat_is_told_of_it(drawing: Any, tmp_path: Path):
    await open_example(drawing, tmp_path, "train_h200")
    while not (heat := drawing.heat[-1])["lines"]:
        await drawing.publications.get()
    hottest = max(heat["lines"], key=lambda line: line["ratio"])
    assert (hottest["line"], hottest["stale"]) == (55, False)
    assert hottest["ratio"] == pytest.approx(8806.047 / 47985.867, rel=1e-6)
    assert heat["summary"].startswith("step 17.2 ms")
    change(drawing, heat["uri"], 2, (55, 16), (55, 16), "1 * ")
    while not any(line["stale"] for line in drawing.heat[-1]["lines"]):
        await drawing.publications.get()
    assert {line["line"] for line in drawing.heat[-1]["lines"] if line["stale"]} == {55}


async def test_files_that_are_not_open_have_their_costly_lines_among_the_problems(
    client: Any, pulling: LanguageClient, tmp_path: Path
):
    file = example_project("train_h200", tmp_path)
    recorded_here(tmp_path, file)
    other = tmp_path / "other.py"
    for editor in (client, pulling):
        open_text(editor, other, TRAIN)
    while file.as_uri() not in client.diagnostics:
        await client.publications.get()
    lines = [each.range.start.line + 1 for each in client.diagnostics[file.as_uri()]]
    assert lines == [47, 48, 52, 56, 57, 58, 73]
    report = await pulling.workspace_diagnostic_async(lsp.WorkspaceDiagnosticParams([]))
    while not report.items:
        report = await pulling.workspace_diagnostic_async(lsp.WorkspaceDiagnosticParams([]))
    (full,) = report.items
    assert isinstance(full, lsp.WorkspaceFullDocumentDiagnosticReport)
    assert [each.range.start.line + 1 for each in full.items] == lines
    known = [lsp.PreviousResultId(full.uri, full.result_id or "")]
    report = await pulling.workspace_diagnostic_async(lsp.WorkspaceDiagnosticParams(known))
    assert [each.kind for each in report.items] == ["unchanged"]
    for editor in (client, pulling):
        await execute(editor, "rooflint.server.clear")
    report = await pulling.workspace_diagnostic_async(lsp.WorkspaceDiagnosticParams(known))
    assert [list(getattr(each, "items", ["?"])) for each in report.items] == [[]]
    while client.diagnostics[file.as_uri()]:
        await client.publications.get()


async def test_an_editor_that_asks_is_told_that_nothing_is_said_of_a_file_it_closed(
    pulling: LanguageClient, tmp_path: Path
):
    """Twice: it may not listen at first."""
    uri = open_text(pulling, tmp_path / "train.py", TRAIN)
    asked = lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(uri))
    answer = await pulling.text_document_diagnostic_async(asked)
    assert getattr(answer, "items", [])
    identifier = lsp.TextDocumentIdentifier(uri)
    pulling.text_document_did_close(lsp.DidCloseTextDocumentParams(identifier))
    known: list[lsp.PreviousResultId] = []
    for _ in range(2):
        params = lsp.WorkspaceDiagnosticParams(known)
        (told,) = (await pulling.workspace_diagnostic_async(params)).items
        assert isinstance(told, lsp.WorkspaceFullDocumentDiagnosticReport)
        assert (told.uri, [*told.items]) == (uri, [])
        known = [lsp.PreviousResultId(uri, told.result_id)] if told.result_id else []
    report = await pulling.workspace_diagnostic_async(lsp.WorkspaceDiagnosticParams(known))
    assert not report.items


async def test_so_have_those_whose_recording_was_made_elsewhere(client: Any, tmp_path: Path):
    file = example_project("train_h200", tmp_path)
    (tmp_path / "jobs").mkdir()
    file = file.rename(tmp_path / "jobs" / "train.py")
    open_text(client, tmp_path / "other.py", TRAIN)
    while file.as_uri() not in client.diagnostics:
        await client.publications.get()
    lines = [each.range.start.line + 1 for each in client.diagnostics[file.as_uri()]]
    assert lines == [47, 48, 52, 56, 57, 58, 73]


async def test_a_rule_leads_to_its_page(client: LanguageClient, tmp_path: Path):
    uri = open_text(client, tmp_path / "train.py", TRAIN)
    (found,) = await published(client, uri, 1)
    assert found.code_description
    page, _, heading = found.code_description.href.partition("#")
    path = to_lsp.to_path(page)
    assert path and f"\n## {heading}\n" in Path(path).read_text("utf-8")
    assert heading == found.code


async def test_a_recording_from_elsewhere_stays_and_tells_which_files_it_matches(
    client: LanguageClient, tmp_path: Path
):
    away, here = tmp_path / "away", tmp_path / "project"
    file = example_project("train_h200", away)
    here.mkdir()
    file.rename(tmp_path / "train.py")
    recording = away / ".rooflint" / "recordings" / "train_h200"
    meta = json.loads((recording / "meta.json").read_text())
    meta["files"]["/home/user/project/gone.py"] = {"sha256": "0" * 64, "loops": []}
    (recording / "meta.json").write_text(json.dumps(meta))
    answer = await execute(client, "rooflint.server.import", str(recording))
    assert answer["matched"] == {"/home/user/project/train.py": str(tmp_path / "train.py")}
    assert answer["unmatched"] == ["/home/user/project/gone.py"]
    kept = Path(answer["recording"])
    assert kept.parent == tmp_path / ".rooflint" / "recordings"
    assert json.loads((kept / "meta.json").read_text())["imported_from"] == str(recording)
    uri = open_text(client, tmp_path / "train.py", (tmp_path / "train.py").read_text())
    assert (await lenses_of(client, uri))[83][0].startswith("step 17.2 ms")


async def test_after_a_fix_the_lens_and_the_card_tell_what_is_new(
    client: LanguageClient, tmp_path: Path
):
    """The example and its mended version, as one script that was edited between two profiles."""
    recordings = tmp_path / ".rooflint" / "recordings"
    for name in ("train_h200", "train_fixed_h200"):
        file = example_project(name, tmp_path)
        recorded_here(tmp_path, file, tmp_path / "train.py")
        (tmp_path / "train.py").write_bytes(file.read_bytes())
    (tmp_path / "train_fixed.py").unlink()
    assert len([*recordings.iterdir()]) == 2
    text = (tmp_path / "train.py").read_text()
    uri = open_text(client, tmp_path / "train.py", text)
    while "→" not in (lens := (await lenses_once_measured(client, uri))[76][0]):
        await client.publications.get()
    # 20 steps each; as `rooflint report --compare` says it.
    assert lens.startswith("step 17.2 → 12.3 ms (−28 %")
    head = text.splitlines().index("        return self.head(x)")
    card = await hover(client, uri, (head, 10))
    assert card and "since the profile before: GPU 2.08 → 0.21 ms (−89.9 %" in card
    answer = await execute(client, "rooflint.server.compare", uri)
    assert answer["summary"] == lens.partition(" · ")[0]
    assert answer["summary"] in answer["text"]
    other = open_text(client, tmp_path / "small.py", SMALL_RUN)
    (tmp_path / "small.py").write_text(SMALL_RUN)
    with pytest.raises(JsonRpcException, match=r"small\.py was not profiled yet"):
        await execute(client, "rooflint.server.compare", other)


async def test_a_trace_from_elsewhere_is_imported_and_cleared(
    client: LanguageClient, tmp_path: Path
):
    trace = Path(__file__).parent / "profiles" / "recordings" / "line_trace.json.gz"
    answer = await execute(client, "rooflint.server.import", str(trace))
    assert answer["summary"].startswith("step ")
    assert rooflint.summarize(judged(Path(answer["recording"]))) == answer["summary"]
    # It has no files, so that none of these can be told to be its own.
    assert answer["matched"] == {} and answer["unmatched"] == ["linetrace.py", "train_gpu.py"]
    assert await execute(client, "rooflint.server.clear") is None
    with pytest.raises(JsonRpcException, match="no/such/trace"):
        await execute(client, "rooflint.server.import", "/no/such/trace.json")


async def test_a_trace_of_functions_is_shown_on_the_file_that_has_them_where_it_has_them(
    client: LanguageClient, tmp_path: Path
):
    """A kernel of 20 µs in `forward`, until 45 µs; one of 5 µs in `train`, from 60 µs on, where
    `forward` has ended at 50 µs. torch names files from the script's folder on."""
    text = "import torch\nclass Model:\n    def forward(self, x):\n        return x\n\n"
    text += "def train(x, n=0):\n    for y in x:\n        n += y.cuda().sum().item()\n"
    file = tmp_path / "jobs" / "train.py"
    file.parent.mkdir()
    file.write_text(text)
    trace = TraceMaker().host("python_function", "train.py(7): train", 0, 90, MAIN)
    trace.host("python_function", "train.py(3): forward", 10, 50, MAIN)
    trace.host("python_function", "lost.py(2): forward", 60, 80, MAIN)
    trace.launch(20, 25, 45, 1).launch(55, 60, 65, 2).launch(70, 75, 76, 3)
    uri = open_text(client, file, text)
    answer = await execute(client, "rooflint.server.import", str(trace.write(tmp_path)))
    assert plain(answer["matched"]) == {"train.py": str(file)}
    assert answer["unmatched"] == ["lost.py"]
    assert any("its functions are where the trace has them" in note for note in answer["notes"])
    assert await hints_of(client, uri) == {
        2: "itself: GPU 20 µs (77 %) · GPU idles 5 µs",
        5: "itself: GPU 5 µs (19 %) · GPU idles 10 µs",
    }
    assert await lenses_of(client, uri) == {}
    card = await hover(client, uri, (5, 4))
    assert card and "**overhead-bound** · train itself · 19 % of GPU time" in card
    card = await hover(client, uri, (7, 20))
    assert card and "not known, the trace names functions and not their lines" in card


async def test_the_roofline_page_and_where_its_lines_are_now(
    client: LanguageClient, tmp_path: Path
):
    recordings = Path(__file__).parent / "profiles" / "recordings"
    target = tmp_path / ".rooflint" / "recordings" / "20261129-160920-train"
    shutil.copytree(recordings / "train_h200", target)
    (source,) = (target / "sources").iterdir()
    script = tmp_path / "train.py"
    shutil.copy(source, script)
    uri = script.as_uri()
    with pytest.raises(JsonRpcException, match=r"nothing was measured around train\.py"):
        await execute(client, "rooflint.server.page", uri)
    await execute(client, "rooflint.server.import", str(target))
    answer = await execute(client, "rooflint.server.page", uri)
    assert answer["html"].startswith("<!DOCTYPE html>") and "/home/user/project" in answer["html"]
    assert answer["shown"] is None
    asked = {"root": answer["root"], "path": "/home/user/project/train.py", "line": 58}
    script.write_text("#\n" + script.read_text())
    answer = await execute(client, "rooflint.server.page", uri, 59)
    assert answer["shown"] == {"path": asked["path"], "line": 58}
    assert await execute(client, "rooflint.server.locate", asked) == {"uri": uri, "line": 58}
    script.write_text(script.read_text()[2:])
    assert await execute(client, "rooflint.server.locate", asked) == {"uri": uri, "line": 57}
    with pytest.raises(JsonRpcException, match="no file of this project"):
        await execute(client, "rooflint.server.locate", {**asked, "path": "/etc/passwd"})
    with pytest.raises(JsonRpcException, match="to find a line"):
        await execute(client, "rooflint.server.locate", 7)


# --- life ---------------------------------------------------------------------------------


def test_messages_of_another_shape_are_refused_and_survived():
    with RawEditor() as editor:
        editor.send(id=1, method="initialize", params={"processId": None, "capabilities": {}})
        assert "capabilities" in editor.receive()["result"]
        editor.send(id=2, method="textDocument/hover", params={"position": 7})
        assert "textDocument/hover" in editor.receive()["error"]["message"]
        editor.send(id=3, method="rooflint/dance", params=[])
        assert editor.receive()["error"]["code"] == -32601
        editor.send(method="textDocument/didChange", params=[])
        editor.write(b"{nonsense")
        editor.write(b"[" * 100_000)
        editor.write(b"[]")
        editor.send(id=4, method="workspace/executeCommand", params={"command": "dance"})
        while "id" not in (answer := editor.receive()):
            assert answer["method"] == lsp.WINDOW_LOG_MESSAGE
        assert answer["error"]["message"] == "there is no command dance"
        editor.send(id=5, method="shutdown")
        assert editor.receive()["result"] is None
        editor.send(method="exit")
        assert editor.process.wait(10) == 0


@pytest.mark.parametrize("broken", [(analysis, "_join"), (to_lsp, "to_diagnostics")])
async def test_a_fault_of_ours_is_told_once_and_answered_with_nothing(
    broken: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
):
    told: list[lsp.LogMessageParams] = []

    def fail(*args: object) -> None:
        raise ZeroDivisionError("the fault")

    monkeypatch.setattr(*broken, fail)
    monkeypatch.setattr(server.server, "window_log_message", told.append)
    monkeypatch.setattr(logging.getLogger("rooflint"), "handlers", [server.TellEditor()])
    document = Document("file:///train.py", "/train.py")
    assert await server.diagnostics_of(document) == {document.uri: []}
    document.rewrite("another text, the same fault")
    assert await server.diagnostics_of(document) == {document.uri: []}
    (message,) = told
    assert "ZeroDivisionError: the fault" in message.message


def test_what_does_not_fit_where_the_conversation_stands_is_refused():
    begin = {"processId": None, "capabilities": {}}
    with RawEditor() as editor:
        editor.send(method="textDocument/didSave", params={"textDocument": {"uri": "file:///a"}})
        editor.send(id=1, method="textDocument/hover", params={})
        assert editor.receive()["error"]["code"] == lsp.ErrorCodes.ServerNotInitialized
        editor.send(id=2, method="initialize", params={"capabilities": 7})
        assert editor.receive()["error"]["code"] == lsp.ErrorCodes.InvalidParams
        editor.send(id=3, method="initialize", params=begin)
        assert "capabilities" in editor.receive()["result"]
        editor.send(id=4, method="initialize", params=begin)
        assert editor.receive()["error"]["code"] == lsp.ErrorCodes.InvalidRequest
        editor.send(id=5, method="shutdown")
        assert editor.receive()["result"] is None
        editor.send(id=6, method="shutdown")
        assert editor.receive()["error"]["code"] == lsp.ErrorCodes.InvalidRequest
        editor.send(method="exit")
        assert editor.process.wait(10) == 0


def test_while_a_long_file_is_looked_at_the_rest_is_answered():
    """20,000 lines take seconds. What was asked meanwhile is answered before they are shown."""
    text = TRAIN + "".join(f"a{line} = torch.ones({line})\n" for line in range(20_000))
    with RawEditor() as editor:
        editor.send(id=1, method="initialize", params={"processId": None, "capabilities": {}})
        editor.receive()
        for uri, content in (("file:///long.py", text), ("file:///short.py", TRAIN)):
            item = {"uri": uri, "languageId": "python", "version": 1, "text": content}
            editor.send(method="textDocument/didOpen", params={"textDocument": item})
        for number, uri in ((2, "file:///long.py"), (3, "file:///short.py")):
            at = {"line": ITEM_LINE, "character": 18}
            editor.send(
                id=number,
                method="textDocument/hover",
                params={"textDocument": {"uri": uri}, "position": at},
            )
        answers = [editor.receive() for _ in range(4)]
        order = [each.get("id") or each["params"]["uri"] for each in answers]
        assert order.index(2) < order.index("file:///long.py")
        assert order.index(3) < order.index("file:///long.py")
        editor.send(id=4, method="shutdown")
        assert editor.receive()["id"] == 4
        editor.send(method="exit")
        assert editor.process.wait(20) == 0


async def test_one_document_is_looked_at_at_a_time_and_its_newest_text_counts(
    monkeypatch: pytest.MonkeyPatch,
):
    begun: asyncio.Queue[str] = asyncio.Queue()
    loop, go_on, running = asyncio.get_running_loop(), Semaphore(0), Semaphore(1)

    def slowly(path: str, text: tuple[str, ...], *others: Any) -> analysis.Analysis:
        assert running.acquire(blocking=False)
        loop.call_soon_threadsafe(begun.put_nowait, text[0])
        go_on.acquire()
        running.release()
        return analysis.analyse(path, text, *others)

    monkeypatch.setattr(session, "analyse", slowly)
    state, long, other = Session(), Document("a", "/a.py"), Document("b", "/b.py")
    long.rewrite("# first\n" + TRAIN + "#\n" * 3000)
    other.rewrite("# other\n" + TRAIN)
    asked = asyncio.gather(state.know(long), state.know(other))
    assert await begun.get() == "# first\n"
    assert await state.know_soon(long) is None
    long.rewrite("# newest\n" + TRAIN + "#\n" * 3000)
    go_on.release()
    later = {await begun.get()}
    go_on.release()
    later.add(await begun.get())
    go_on.release()
    assert later == {"# newest\n", "# other\n"}
    known, _ = await asked
    assert known.text[0] == "# newest\n" and len(known.findings) == 1
    assert begun.empty()


async def test_an_analysis_is_of_use_until_the_next_one_where_the_text_is_unchanged():
    state, document = Session(), Document("a", "/a.py")
    document.rewrite(TRAIN)
    known = await state.know(document)
    line = ITEM_LINE + 1
    before = known.line(line, tuple(document.lines))
    assert before and before.line == line
    document.replace((1, 0), (1, 0), "# one\n# two\n")
    assert not state.is_known(document)
    now = tuple(document.lines)
    after = known.line(line + 2, now)
    assert after and after.line == line + 2
    assert known.line(line, now) is None
    (finding,), (moved,) = before.findings, after.findings
    places = [why.span.line for why in finding.because]
    assert [why.span.line for why in moved.because] == [place + 2 for place in places]
    document.replace((line + 1, 0), (line + 1, 4), "")
    assert known.line(line + 2, tuple(document.lines)) is None


async def test_what_was_learned_while_nobody_waited_is_told_by_the_next_who_asks():
    state, document = Session(), Document("a", "/a.py")
    document.rewrite(TRAIN)
    await state.know(document)
    assert not await state.learn(document)
    document.learned += 1
    assert await state.learn(document)


def test_the_server_ends_with_its_editor():
    with RawEditor() as editor:
        editor.send(id=1, method="initialize", params={"processId": None, "capabilities": {}})
        editor.receive()
        assert editor.process.stdin
        editor.process.stdin.close()
        editor.process.wait(10)


@pytest.mark.parametrize("farewell", ["shutdown", "none", "terminate"])
def test_no_run_outlives_the_editor(tmp_path: Path, farewell: str):
    file, running = tmp_path / "endless.py", tmp_path / "running"
    file.write_text(
        f"import os\nopen({str(running)!r}, 'w').write(str(os.getpid()))\n{ENDLESS_RUN}"
    )
    with RawEditor() as editor:
        editor.send(id=1, method="initialize", params={"processId": None, "capabilities": {}})
        editor.receive()
        profile = {"command": "rooflint.server.profile", "arguments": [file.as_uri()]}
        editor.send(id=2, method="workspace/executeCommand", params=profile)
        while "20 steps" not in editor.receive().get("params", {}).get("text", ""):
            pass
        child = int(running.read_text())
        os.kill(child, 0)
        if farewell == "shutdown":
            editor.send(id=3, method="shutdown")
            editor.send(method="exit")
        if farewell == "terminate":
            editor.process.terminate()
        else:
            assert editor.process.stdin
            editor.process.stdin.close()
        editor.process.wait(60)
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


async def test_a_script_that_prints_faster_than_the_editor_reads_has_to_wait():
    """Pieces that were not told yet are kept, and told together."""
    told: list[int] = []

    def notify(method: str, params: dict[str, str]) -> None:
        told.append(len(params["text"]))
        time.sleep(0.01)

    editor: Any = SimpleNamespace(protocol=SimpleNamespace(notify=notify))
    listener = progress.Listener(editor, None)
    piece = progress.Progress("timeline", output="x" * (1 << 16))

    def flood() -> None:
        for _ in range(500):
            listener.hear(piece)

    await asyncio.to_thread(flood)
    await asyncio.sleep(0)
    assert sum(told) == 500 << 16
    assert max(told) < progress.MOST_PENDING + (1 << 16)


def test_on_a_port_of_this_machine_it_serves_the_same():
    command = [*SERVER.server_command, "--tcp", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr
        said = process.stderr.readline().decode()
        address = said.rpartition(" ")[2].strip().rpartition(":")
        if sys.platform == "linux":  # where all of 127.0.0.0/8 is this machine
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", int(address[2])))
        with socket.create_connection((address[0], int(address[2]))) as connection:
            body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
            connection.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            assert connection.recv(14) == b"Content-Length"
        assert process.wait(10) == 0


# --- helpers ------------------------------------------------------------------------------


async def begin(
    client: LanguageClient, folder: Path, can: lsp.ClientCapabilities, options: Any = None
) -> None:
    await client.initialize_session(
        lsp.InitializeParams(
            capabilities=can,
            initialization_options=options,
            root_uri=folder.as_uri(),
            workspace_folders=[lsp.WorkspaceFolder(folder.as_uri(), folder.name)],
        )
    )


def open_text(client: LanguageClient, file: Path, text: str) -> str:
    uri = file.as_uri()
    client.text_document_did_open(
        lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, text))
    )
    return uri


def example_project(name: str, folder: Path) -> Path:
    """A project that holds an example and its recording from an H200."""
    tests = Path(__file__).parent
    target = folder / ".rooflint" / "recordings" / name
    shutil.copytree(tests / "profiles" / "recordings" / name, target)
    packed = target / "counters.ncu-rep.xz"
    (target / "counters.ncu-rep").write_bytes(lzma.decompress(packed.read_bytes()))
    (source,) = (target / "sources").iterdir()
    file = folder / f"{name.removesuffix('_h200')}.py"
    shutil.copy(source, file)
    return file


def recorded_here(folder: Path, file: Path, path: Path | None = None) -> None:
    """Have the example's recording name its file where it lies now, or as another path."""
    path = path or file
    recording = folder / ".rooflint" / "recordings" / f"{file.stem}_h200"
    was = f"/home/user/project/{file.name}"
    meta = (recording / "meta.json").read_text()
    (recording / "meta.json").write_text(meta.replace(was, str(path)).replace(file.name, path.name))
    trace = gzip.decompress((recording / "trace.json.gz").read_bytes())
    trace = trace.replace(was.encode(), str(path).encode())
    (recording / "trace.json.gz").write_bytes(gzip.compress(trace, 1))


def judged(path: Path) -> Report:
    return rooflint.judge(rooflint.read_recording(path))


def plain(value: Any) -> Any:
    """What came as objects of pygls's making."""
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


async def open_example(client: LanguageClient, folder: Path, name: str) -> str:
    """An example, once its recording is shown."""
    file = example_project(name, folder)
    uri = open_text(client, file, file.read_text())
    await lenses_once_measured(client, uri)
    return uri


async def lenses_once_measured(client: Any, uri: str) -> dict[int, list[str]]:
    while not (lenses := await lenses_of(client, uri)):
        await client.publications.get()
    return lenses


async def lenses_of(client: LanguageClient, uri: str) -> dict[int, list[str]]:
    """What stands above lines, from 0."""
    params = lsp.CodeLensParams(lsp.TextDocumentIdentifier(uri))
    lenses: dict[int, list[str]] = {}
    for lens in await client.text_document_code_lens_async(params) or ():
        assert lens.command
        lenses.setdefault(lens.range.start.line, []).append(lens.command.title)
    return lenses


async def hints_of(client: LanguageClient, uri: str) -> dict[int, str]:
    """What stands at the ends of lines, from 0."""
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(9999, 0))
    params = lsp.InlayHintParams(lsp.TextDocumentIdentifier(uri), whole)
    hints = await client.text_document_inlay_hint_async(params) or ()
    return {hint.position.line: str(hint.label) for hint in hints}


Place = tuple[int, int]


def change(
    client: LanguageClient, uri: str, version: int, start: Place, end: Place, text: str
) -> None:
    place = lsp.Range(lsp.Position(*start), lsp.Position(*end))
    client.text_document_did_change(
        lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(version, uri),
            [lsp.TextDocumentContentChangePartial(place, text)],
        )
    )


async def published(client: Any, uri: str, version: int) -> list[lsp.Diagnostic]:
    """The next diagnostics that are published for this version of the file."""
    while True:
        params = await client.publications.get()
        if (params.uri, params.version) == (uri, version):
            return list(params.diagnostics)


async def pulled(client: LanguageClient, uri: str) -> Sequence[lsp.Diagnostic]:
    report = await client.text_document_diagnostic_async(
        lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(uri))
    )
    assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
    return report.items


async def hover(client: LanguageClient, uri: str, place: Place) -> str | None:
    answer = await client.text_document_hover_async(
        lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(*place))
    )
    if answer is None:
        return None
    assert isinstance(answer.contents, lsp.MarkupContent)
    return answer.contents.value


def asked_at(
    uri: str,
    start: Place,
    end: Place,
    shown: Sequence[lsp.Diagnostic] = (),
    only: list[str] | None = None,
) -> lsp.CodeActionParams:
    return lsp.CodeActionParams(
        lsp.TextDocumentIdentifier(uri),
        lsp.Range(lsp.Position(*start), lsp.Position(*end)),
        lsp.CodeActionContext(list(shown), only),
    )


async def actions(client: LanguageClient, uri: str, found: lsp.Diagnostic) -> list[lsp.CodeAction]:
    at = (found.range.start.line, found.range.start.character)
    answer = await client.text_document_code_action_async(asked_at(uri, at, at, [found]))
    assert answer
    return [action for action in answer if isinstance(action, lsp.CodeAction)]


def edits_of(action: lsp.CodeAction) -> list[lsp.TextEdit]:
    assert action.edit is not None
    if action.edit.changes:
        (edits,) = action.edit.changes.values()
        return list(edits)
    assert action.edit.document_changes
    (of_file,) = action.edit.document_changes
    assert isinstance(of_file, lsp.TextDocumentEdit)
    return [edit for edit in of_file.edits if isinstance(edit, lsp.TextEdit)]


def apply(text: str, edits: Sequence[lsp.TextEdit]) -> str:
    """The text after the edits; it is ASCII, so that a column is a character."""
    assert text.isascii()
    for edit in sorted(edits, key=lambda edit: edit.range.start, reverse=True):
        text = (
            text[: offset(text, edit.range.start)]
            + edit.new_text
            + text[offset(text, edit.range.end) :]
        )
    return text


def under(text: str, place: lsp.Range) -> str:
    return text[offset(text, place.start) : offset(text, place.end)]


def offset(text: str, position: lsp.Position) -> int:
    lines = text.splitlines(keepends=True)
    return sum(map(len, lines[: position.line])) + position.character


async def execute(client: LanguageClient, command: str, *arguments: Any) -> Any:
    return await client.workspace_execute_command_async(
        lsp.ExecuteCommandParams(command, list(arguments))
    )


def listen(client: LanguageClient) -> list[str]:
    """What the script prints, as it comes."""
    heard: list[str] = []

    @client.feature("rooflint/output")
    def output(params: Any) -> None:
        heard.append(params.text)

    return heard


def listen_to_measured(client: LanguageClient) -> list[tuple[str, str | None]]:
    """What is said to be known of projects: the folder, and what was measured in it."""
    known: list[tuple[str, str | None]] = []

    @client.feature("rooflint/measured")
    def measured(params: Any) -> None:
        known.append((params.root, params.summary))

    return known
