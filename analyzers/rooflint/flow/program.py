"""The files that are followed together: each finds the others by its imports, as Python would."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rooflint.flow.bindings import ClassParts, Part, class_parts, statements_by_name
from rooflint.flow.values import Value
from rooflint.source import SourceFile

if TYPE_CHECKING:
    from threading import Event

_FOREIGN = frozenset(
    """torch numpy torchvision torchmetrics einops accelerate transformers lightning
    pytorch_lightning lightning_fabric tqdm wandb site-packages dist-packages""".split()
)
"""Known by name, or never the user's own, wherever they lie."""
_MOST_CHARACTERS = 8_000_000
"""Text whose trees are kept at a time; what was used longest ago is read again when needed."""


class Program:
    """The files of a project, read when another needs them.

    `read` gives the text of a file, `None` if it cannot be read; `folders` are where imports
    are looked for besides the importing file's own folder and package.
    """

    def __init__(
        self,
        read: Callable[[str], str | None],
        folders: Iterable[str] = (),
        list_folder: Callable[[str], Iterable[str]] = os.listdir,
    ):
        self._read = read
        self._list_folder = list_folder
        self._folders = tuple("" if folder == "." else folder for folder in folders)
        self._files: dict[str, SourceFile | None] = {}
        self._statements: dict[str, dict[str, list[Part]]] = {}
        self._classes: dict[str, dict[ast.ClassDef, ClassParts]] = {}
        self._imported: dict[str, dict[tuple[ast.ImportFrom, str | None], dict[str, Value]]] = {}
        self.listed: dict[str, frozenset[str]] = {}
        """The folders that imports were looked for in, with what they hold."""
        self._places: dict[str, tuple[str, ...]] = {}
        self._found: dict[tuple[str, int, str], str | None] = {}
        """What imports were found to mean, as long as no file and no package is new."""
        self.spaces: set[str] = set()
        """Folders that a module was imported through: packages, whatever else is in them."""
        self.glances: dict[str, tuple[bool, frozenset[str]]] = {}
        """Of files that were looked at: whether their text is of GPUs, and whom they import."""
        self._characters = 0
        self.cancelled: Event | None = None
        """Set by another thread: what is being followed is no longer asked for."""

    def put(self, file: SourceFile) -> None:
        """Take a file as it stands now."""
        self.drop(file.path)
        self._files[file.path] = file
        self._characters += len(file.text)
        self._list(file.path)

    def drop(self, path: str) -> None:
        """Forget a file, to read it again when it is needed."""
        self._statements.pop(path, None)
        self.glances.pop(path, None)
        self._classes.pop(path, None)
        self._imported.pop(path, None)
        file = self._files.pop(path, None)
        if file is not None:
            self._characters -= len(file.text)

    def is_there(self, path: str) -> bool:
        """Whether imports find a file, to what is known of its folder."""
        return os.path.basename(path) in self._listed(os.path.dirname(path))

    def look_again(self) -> None:
        """Files may have come or gone."""
        self.listed.clear()
        self._places.clear()
        self.glances.clear()
        self._found.clear()
        for path, file in self._files.items():
            if file is not None:
                self._list(path)

    def _list(self, path: str) -> None:
        """Have imports find a file, though it may never have been saved."""
        folder, name = os.path.split(path)
        listed = self._listed(folder)
        if name not in listed:
            self.listed[folder] = listed | {name}
            self._found.clear()

    def file(self, path: str) -> SourceFile | None:
        """A file of the program; `None`: there is none that can be read."""
        if path not in self._files:
            text = self._read(path)
            if text is None:
                self._files[path] = None
                return None
            self.put(SourceFile.parse(path, text))
        else:
            # The one used last stands at the end.
            self._files[path] = self._files.pop(path)
        return self._files[path]

    def text(self, path: str) -> str | None:
        """The text of a file that may never be followed; it is not kept."""
        file = self._files.get(path)
        return file.text if file is not None else self._read(path) if path.endswith(".py") else None

    def statements_by_name(self, file: SourceFile) -> dict[str, list[Part]]:
        """A file's top-level statements by the names that rest on them."""
        found = self._statements.get(file.path)
        if found is None:
            found = self._statements[file.path] = statements_by_name(file)
        return found

    def class_parts(self, path: str, node: ast.ClassDef, body: Iterable[Part]) -> ClassParts:
        """What of a class need not be followed before it is asked for."""
        known = self._classes.setdefault(path, {})
        if node not in known:
            known[node] = class_parts(body)
        return known[node]

    def names_imported_by(
        self, path: str
    ) -> dict[tuple[ast.ImportFrom, str | None], dict[str, Value]]:
        """What the imports of a file bind, as far as they were followed, each with the file that
        it means."""
        return self._imported.setdefault(path, {})

    def find(self, importer: str, level: int, dotted: str) -> str | None:
        """The file that a name imported by a file stands for, or the folder of a package without
        an `__init__.py`; `None`: it is no file of the program."""
        key = importer, level, dotted
        if key not in self._found:
            packages = len(self.spaces)
            found = self._find(importer, level, dotted)
            if len(self.spaces) > packages:
                self._found.clear()
            self._found[key] = found
        return self._found[key]

    def _find(self, importer: str, level: int, dotted: str) -> str | None:
        if not importer or dotted.partition(".")[0] in _FOREIGN:
            return None
        if level:
            folder = os.path.dirname(importer)
            for _ in range(level - 1):
                folder = _parent(folder)
            return self._below(folder, dotted) if dotted else self._package(folder)
        for folder in self._folders_of(importer):
            own = os.path.join(folder, dotted.partition(".")[0])
            if os.path.basename(folder) in _FOREIGN and not importer.startswith(own + os.sep):
                continue
            found = self._below(folder, dotted)
            if found is not None:
                return found
        return None

    def member(self, path: str, name: str) -> str | None:
        """The module `name` of a package, given its `__init__.py` or its folder."""
        if path.endswith(".py"):
            if os.path.basename(path) != "__init__.py":
                return None
            path = os.path.dirname(path)
        return self._below(path, name)

    def _below(self, folder: str, dotted: str) -> str | None:
        *spaces, name = dotted.split(".")
        for part in spaces:
            if part not in self._listed(folder):
                return None
            folder = os.path.join(folder, part)
        found = self._in(folder, name)
        if found is not None:
            for _ in spaces:
                self.spaces.add(folder)
                folder = os.path.dirname(folder)
        return found

    def _in(self, folder: str, name: str) -> str | None:
        listed = self._listed(folder)
        if name in listed:
            package = self._package(os.path.join(folder, name))
            if package is not None and package.endswith(".py"):
                return package
            return package if name + ".py" not in listed else os.path.join(folder, name + ".py")
        return os.path.join(folder, name + ".py") if name + ".py" in listed else None

    def _package(self, folder: str) -> str | None:
        listed = self._listed(folder)
        if "__init__.py" in listed:
            return os.path.join(folder, "__init__.py")
        is_package = folder in self.spaces or any(name.endswith(".py") for name in listed)
        return folder if is_package else None

    def _listed(self, folder: str) -> frozenset[str]:
        names = self.listed.get(folder)
        if names is None:
            try:
                names = frozenset(self._list_folder(folder or "."))
            except OSError:
                names = frozenset[str]()
            self.listed[folder] = names
        return names

    def _folders_of(self, importer: str) -> tuple[str, ...]:
        """Where a file's absolute imports are looked for: the folder that holds it or its
        package, as for a script; then those around that up to the project's, and their `src`, as
        for what was installed from here."""
        folder = os.path.dirname(importer)
        known = self._places.get(folder)
        if known is None:
            top = folder
            while "__init__.py" in self._listed(top) and top != _parent(top):
                top = _parent(top)
            around = [top]
            inside = any(_is_below(top, project) for project in self._folders)
            while inside and around[-1] not in self._folders:
                around.append(_parent(around[-1]))
            found = dict.fromkeys((*around, *self._folders))
            sources = [os.path.join(f, "src") for f in found if "src" in self._listed(f)]
            known = self._places[folder] = (*found, *sources)
        return known

    def make_room(self) -> None:
        """Forget what was used longest ago, if there is much. Not while files are followed."""
        for path in list(self._files):
            if self._characters <= _MOST_CHARACTERS:
                return
            self.drop(path)


def _is_below(folder: str, other: str) -> bool:
    if other:
        inside = folder == other or folder.startswith(other + os.sep)
    else:
        inside = not os.path.isabs(folder)
    return inside and os.pardir not in folder[len(other) :].split(os.sep)


def _parent(folder: str) -> str:
    if os.path.basename(folder) in ("", ".", "..") and not os.path.isabs(folder):
        return os.path.join(folder, "..")
    return os.path.dirname(folder)
