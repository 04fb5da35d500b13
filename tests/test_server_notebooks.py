"""Notebooks as an editor sends them: cells are opened, edited, moved and deleted one by one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from notebook_maker import write_notebook
from pytest_lsp import LanguageClient, client_capabilities
from test_server import (
    PUSHING,
    SERVER,
    actions,
    begin,
    edits_of,
    execute,
    hover,
    open_text,
    published,
    pulled,
    under,
)

from rooflint_server import server
from rooflint_server.document import Document, Part
from rooflint_server.notebook import CellText, Notebook

SETUP = 'import torch\nmodel = torch.nn.Linear(8, 8).to("cuda")'
BATCHES = 'batches = [torch.randn(4, 8, device="cuda")] * 100'
DEVICE = 'import torch\ndevice = "cuda"'
MADE = """\
model = torch.nn.Linear(8, 8).to(device)
batches = [torch.randn(4, 8, device=device)] * 100"""
MODEL = """\
import torch
model = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), 0.1)"""
STEPS = """\
%%time
for step in range(20):
    loss = model(torch.ones(64, 256)).sum()
    loss.backward()
    optimizer.step()"""
ME = {"python": sys.executable}
TOTAL = "%%time\ntotal = 0.0\nfor batch in batches:\n    total += model(batch).sum().item()"


@pytest_lsp.fixture(config=SERVER)
async def client(lsp_client: LanguageClient, tmp_path: Path):
    await begin(lsp_client, tmp_path, PUSHING)
    yield
    await lsp_client.shutdown_session()


@pytest_lsp.fixture(config=SERVER)
async def pulling(lsp_client: LanguageClient, tmp_path: Path):
    can = client_capabilities("visual-studio-code")
    assert can.workspace and can.text_document
    can.text_document.diagnostic = lsp.DiagnosticClientCapabilities()
    can.workspace.diagnostics = lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    await begin(lsp_client, tmp_path, can)
    yield
    await lsp_client.shutdown_session()


async def test_a_wait_is_underlined_in_its_cell_and_explained_by_another(
    client: LanguageClient, tmp_path: Path
):
    book = Book(client, tmp_path / "a.ipynb", SETUP, ("markdown", "# Prose"), BATCHES, TOTAL)
    (found,) = await published(client, book.uri(4), 1)
    assert under(TOTAL, found.range) == "model(batch).sum().item()"
    assert found.related_information
    places = [why.location for why in found.related_information]
    assert {place.uri for place in places} == {book.uri(3), book.uri(4)}
    assert under(BATCHES, places[0].range).startswith("torch.randn")
    card = await hover(client, book.uri(4), (3, 8))
    assert card and "waits for the GPU on every step of this loop" in card
    assert "(cell 3 line 1)" in card and "(cell 4 line 3)" in card
    assert await hover(client, book.uri(1), (1, 0)) is None
    assert await hover(client, book.uri(2), (0, 0)) is None


async def test_a_fix_and_a_comment_change_the_cell(client: LanguageClient, tmp_path: Path):
    book = Book(client, tmp_path / "a.ipynb", SETUP, BATCHES, TOTAL)
    (found,) = await published(client, book.uri(3), 1)
    offered = await actions(client, book.uri(3), found)
    fix, ignore = offered
    assert fix.is_preferred and list(fix.diagnostics or ()) == [found]
    for action in offered:
        assert action.edit and action.edit.document_changes
        (change,) = action.edit.document_changes
        assert isinstance(change, lsp.TextDocumentEdit)
        assert (change.text_document.uri, change.text_document.version) == (book.uri(3), 1)
    assert [edit.range.start.line for edit in edits_of(fix)] == [3, 3]
    (comment,) = edits_of(ignore)
    assert comment.new_text == "  # rooflint: ignore[item-in-loop]"
    assert comment.range.start == lsp.Position(3, len(TOTAL.split("\n")[3]))


async def test_what_is_said_of_a_cell_follows_edits_of_others(
    client: LanguageClient, tmp_path: Path
):
    book = Book(client, tmp_path / "a.ipynb", DEVICE, MADE, TOTAL)
    assert len(await published(client, book.uri(3), 1)) == 1
    book.edit(1, (1, 10), (1, 14), "cpu")
    assert await published(client, book.uri(3), 1) == []
    book.edit(1, (1, 10), (1, 13), "cuda")
    assert len(await published(client, book.uri(3), 1)) == 1


async def test_cells_are_inserted_moved_and_deleted(client: LanguageClient, tmp_path: Path):
    book = Book(client, tmp_path / "a.ipynb", BATCHES, TOTAL)
    batches, total = book.cells
    assert await published(client, total, 1) == []  # nothing says what `model` is
    setup = book.insert(0, SETUP)
    (found,) = await published(client, total, 1)
    assert found.range.start == lsp.Position(3, 13)
    book.move(0, 2)
    assert book.cells == [batches, total, setup]
    assert await published(client, total, 1) == []
    book.move(2, 0)
    assert len(await published(client, total, 1)) == 1
    book.delete(2)
    while True:
        gone = await client.publications.get()  # pyright: ignore
        if gone.uri == total and not gone.diagnostics:
            break
    assert await hover(client, total, (3, 8)) is None


async def test_a_cell_that_becomes_another_language_is_left_out(
    client: LanguageClient, tmp_path: Path
):
    book = Book(client, tmp_path / "a.ipynb", SETUP, BATCHES, TOTAL)
    (cell,) = book.cells[2:]
    assert len(await published(client, cell, 1)) == 1
    book.delete(2)
    book.insert(2, TOTAL, language="sql")
    assert await hover(client, book.uri(3), (3, 8)) is None


async def test_an_editor_that_asks_is_told_to_ask_of_the_other_cells_again(
    pulling: Any, tmp_path: Path
):
    book = Book(pulling, tmp_path / "a.ipynb", DEVICE, MADE, TOTAL)
    assert len(await pulled(pulling, book.uri(3))) == 1
    assert not await pulled(pulling, book.uri(2))
    refreshed = listen_for_refresh(pulling)
    book.edit(1, (1, 10), (1, 14), "cpu")
    while await pulled(pulling, book.uri(3)):
        await refreshed.wait()
        refreshed.clear()


async def test_a_notebook_that_is_open_tells_files_how_they_are_used(
    client: LanguageClient, tmp_path: Path
):
    helper = "def show(loss):\n    print(loss.item())\n"
    Book(
        client,
        tmp_path / "a.ipynb",
        SETUP + "\nfrom helper import show",
        BATCHES,
        "for batch in batches:\n    show(model(batch).sum())",
    )
    uri = open_text(client, tmp_path / "helper.py", helper)
    while not (found := await published(client, uri, 1)):
        pass
    assert under(helper, found[0].range) == "loss.item()"


async def test_numbers_of_a_profile_stand_on_the_lines_of_cells_and_go_with_them(
    client: Any, tmp_path: Path
):
    pytest.importorskip("torch")
    path = write_notebook(tmp_path / "a.ipynb", MODEL, ("markdown", "# Prose"), STEPS)
    book = Book(client, path, MODEL, ("markdown", "# Prose"), STEPS)
    model, _, steps = book.cells
    answer = await execute(client, "rooflint.server.profile", {"uri": book.document, **ME})
    assert answer["summary"].startswith("step ") and answer["exit_code"] == 0
    assert "measured" in str(await hover(client, steps, (2, 8)))
    assert "measured" not in str(await hover(client, model, (1, 8)))
    assert 2 in await hints_in(client, steps)

    # The eighth of the lines of all cells below each other, each below a comment, is its third.
    asked = {"root": str(tmp_path), "path": str(path), "line": 8}
    assert await execute(client, "rooflint.server.locate", asked) == {"uri": steps, "line": 2}

    book.insert(0, "print('first')\nprint('second')")
    book.move(1, 3)
    assert book.cells[3] == model
    assert "measured" in str(await hover(client, steps, (2, 8)))
    book.edit(3, (0, 0), (0, 0), "\n\n")
    assert "measured" in str(await hover(client, steps, (4, 8)))
    assert 2 not in await hints_in(client, steps)
    book.edit(3, (4, 4), (4, 8), "cost")
    assert "stale" in str(await hover(client, steps, (4, 8)))
    book.delete(2)
    assert await hover(client, steps, (4, 8)) is None

    # Closed, it is what is on disk; its cells have no names any more.
    book.close()
    while not (said := client.diagnostics.get(book.document)):
        await client.publications.get()
    assert any(one.message.startswith("cell 3 line 3: ") for one in said)
    Book(client, path, MODEL, ("markdown", "# Prose"), STEPS)
    while client.diagnostics[book.document]:
        await client.publications.get()


async def test_a_closed_notebook_is_forgotten(client: LanguageClient, tmp_path: Path):
    book = Book(client, tmp_path / "a.ipynb", SETUP, BATCHES, TOTAL)
    assert len(await published(client, book.uri(3), 1)) == 1
    book.close()
    assert await hover(client, book.uri(3), (3, 8)) is None


async def hints_in(client: LanguageClient, uri: str) -> set[int]:
    """The lines of a cell that say at their ends what they cost."""
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(100, 0))
    answer = await client.text_document_inlay_hint_async(
        lsp.InlayHintParams(lsp.TextDocumentIdentifier(uri), everything)
    )
    return {hint.position.line for hint in answer or ()}


class Book:
    """An open notebook, as an editor keeps it in step with the server."""

    def __init__(self, client: Any, path: Path, *cells: str | tuple[str, str]) -> None:
        self.client, self.document, self.version = client, path.as_uri(), 1
        self.made = 0
        opened = [self._made(cell) for cell in cells]
        self.cells = [cell.document for cell, _ in opened]
        client.notebook_document_did_open(
            lsp.DidOpenNotebookDocumentParams(
                lsp.NotebookDocument(
                    self.document, "jupyter-notebook", 1, [cell for cell, _ in opened]
                ),
                [text for _, text in opened],
            )
        )

    def uri(self, number: int) -> str:
        return self.cells[number - 1]

    def edit(self, number: int, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        change = lsp.TextDocumentContentChangePartial(
            lsp.Range(lsp.Position(*start), lsp.Position(*end)), text
        )
        self.version += 1
        identifier = lsp.VersionedTextDocumentIdentifier(self.version, self.uri(number))
        content = lsp.NotebookDocumentCellContentChanges(identifier, [change])
        self._change(lsp.NotebookDocumentCellChanges(text_content=[content]))

    def insert(self, at: int, text: str, language: str = "python") -> str:
        cell, item = self._made(text, language)
        self._restructure(at, 0, [cell], opened=[item])
        return cell.document

    def move(self, start: int, to: int) -> None:
        """As VS Code sends it: all cells between are put anew, and none is opened or closed."""
        cells = [*self.cells]
        cells.insert(to, cells.pop(start))
        first, last = min(start, to), max(start, to)
        moved = [lsp.NotebookCell(lsp.NotebookCellKind.Code, uri) for uri in cells]
        self._restructure(first, last - first + 1, moved[first : last + 1])

    def delete(self, at: int) -> None:
        self._restructure(at, 1, [], closed=[lsp.TextDocumentIdentifier(self.cells[at])])

    def close(self) -> None:
        self.client.notebook_document_did_close(
            lsp.DidCloseNotebookDocumentParams(
                lsp.NotebookDocumentIdentifier(self.document),
                [lsp.TextDocumentIdentifier(uri) for uri in self.cells],
            )
        )

    def _made(
        self, cell: str | tuple[str, str], language: str = "python"
    ) -> tuple[lsp.NotebookCell, lsp.TextDocumentItem]:
        kind, text = ("code", cell) if isinstance(cell, str) else cell
        self.made += 1
        uri = self.document.replace("file:", "vscode-notebook-cell:") + f"#W{self.made}sZmlsZQ"
        language = language if kind == "code" else kind
        cell_kind = lsp.NotebookCellKind.Code if kind == "code" else lsp.NotebookCellKind.Markup
        return lsp.NotebookCell(cell_kind, uri), lsp.TextDocumentItem(uri, language, 1, text)

    def _restructure(
        self,
        start: int,
        count: int,
        cells: Sequence[lsp.NotebookCell],
        opened: Sequence[lsp.TextDocumentItem] = (),
        closed: Sequence[lsp.TextDocumentIdentifier] = (),
    ) -> None:
        self.cells[start : start + count] = [cell.document for cell in cells]
        array = lsp.NotebookCellArrayChange(start, count, cells)
        structure = lsp.NotebookDocumentCellChangeStructure(array, opened, closed)
        self.version += 1
        self._change(lsp.NotebookDocumentCellChanges(structure))

    def _change(self, cells: lsp.NotebookDocumentCellChanges) -> None:
        self.client.notebook_document_did_change(
            lsp.DidChangeNotebookDocumentParams(
                lsp.VersionedNotebookDocumentIdentifier(self.version, self.document),
                lsp.NotebookDocumentChangeEvent(cells=cells),
            )
        )


def listen_for_refresh(client: Any) -> asyncio.Event:
    """Set once the server asks for diagnostics to be asked for again."""
    told = asyncio.Event()
    features = client.protocol.fm.features
    features[lsp.WORKSPACE_DIAGNOSTIC_REFRESH] = lambda params: told.set()
    return told


def notebook_of(count: int) -> Notebook:
    """Each cell waits, and is explained by the first."""
    notebook = Notebook("file:///a.ipynb", "/a.ipynb")
    loop = "for step in range(100):\n    total = x.sum().item()"
    for n, text in enumerate(["import torch\nx = torch.ones(3).cuda()", *[loop] * count]):
        cell = Document(f"cell:{n}", f"cell:{n}", 1)
        cell.rewrite(text)
        notebook.cells.append(CellText(cell, "", True))
    notebook.join()
    return notebook


async def test_what_is_said_of_thousands_of_cells_is_not_looked_for_in_each(
    monkeypatch: pytest.MonkeyPatch,
):
    """Twenty thousand of them never came to an end."""
    looked_at = 0
    holds = Part.holds

    def count(part: Part, line: int) -> bool:
        nonlocal looked_at
        looked_at += 1
        return holds(part, line)

    monkeypatch.setattr(Part, "holds", count)
    looks: list[int] = []
    for cells in (40, 160):
        looked_at = 0
        found = await server.diagnostics_of(notebook_of(cells))
        assert [len(of_cell) for of_cell in found.values()] == [0] + [1] * cells
        looks.append(looked_at)
    assert looks[1] < 6 * looks[0]


async def test_an_edit_of_a_cell_tells_of_no_others_what_was_told(
    client: LanguageClient, tmp_path: Path
):
    book = Book(client, tmp_path / "a.ipynb", SETUP, BATCHES, *[TOTAL] * 20)
    await published(client, book.uri(22), 1)
    book.edit(5, (0, 0), (0, 0), "# a comment\n")
    told = await client.publications.get()
    assert (told.uri, told.version) == (book.uri(5), book.version)
    assert client.publications.empty()
