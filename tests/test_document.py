"""An open document stays equal to the editor's, whatever is in it and wherever it is edited."""

import random
import re

import pytest

from rooflint_server.document import Document, Encoding, count_characters, count_units

CODECS: dict[Encoding, str] = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
UNIT_BYTES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
PIECES = [
    "",
    "x",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\f",
    "\u2028",
    "é",
    "火",
    "😋",
    "a\nb",
    "\r\n😋\n",
    "\n\n",
]


@pytest.mark.parametrize("encoding", list(CODECS))
@pytest.mark.parametrize("seed", range(40))
def test_edits_change_a_document_as_they_change_its_bytes(encoding: Encoding, seed: int):
    random.seed(seed)
    document = Document("file:///a.py", "/a.py")
    text = "".join(random.choices(PIECES, k=30))
    document.rewrite(text)
    for _ in range(30):
        start, end = sorted(random.choices(_positions(text, encoding), k=2), key=lambda p: p[2])
        put = random.choice(PIECES)
        text = text[: start[2]] + put + text[end[2] :]
        document.replace(
            document.place(start[0], start[1], encoding),
            document.place(end[0], end[1], encoding),
            put,
        )
        assert document.text == text
        assert document.lines == _lines(text)


def _lines(text: str) -> list[str]:
    r"""The protocol's lines: ended by \n, \r\n or \r and nothing else."""
    return [a + b for a, b in re.findall(r"([^\r\n]*)(\r\n|\r|\n|$)", text)][
        : len(re.findall(r"\r\n|\r|\n", text)) + 1
    ]


def _positions(text: str, encoding: Encoding) -> list[tuple[int, int, int]]:
    """Each place of a text as line, column in the editor's units, and offset in characters."""
    positions: list[tuple[int, int, int]] = []
    offset = 0
    for number, line in enumerate(_lines(text)):
        content = line.rstrip("\r\n")
        for column in range(len(content) + 1):
            units = len(content[:column].encode(CODECS[encoding])) // UNIT_BYTES[encoding]
            positions.append((number, units, offset + column))
        offset += len(line)
    return positions


def test_an_emoji_is_two_columns_in_utf_16_and_a_tab_is_one():
    line = '\tx = "😋"; y'
    assert count_units(line, line.index(";"), "utf-16") == line.index(";") + 1
    assert count_units(line, 1, "utf-16") == 1
    assert count_units(line, line.index(";"), "utf-8") == line.index(";") + 3


def test_a_column_inside_of_a_character_is_its_start():
    assert count_characters("a😋b", 2, "utf-16") == 1
    assert count_characters("a😋b", 3, "utf-16") == 2


def test_places_outside_of_the_file_are_the_nearest_inside():
    document = Document("file:///a.py", "/a.py")
    document.rewrite("ab\ncd")
    assert document.place(0, 99, "utf-16") == (0, 2)
    assert document.place(7, 0, "utf-16") == (1, 2)


def test_a_form_feed_does_not_end_a_line():
    document = Document("file:///a.py", "/a.py")
    document.rewrite("a\f\nb\n")
    assert document.lines == ["a\f\n", "b\n", ""]
