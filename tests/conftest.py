"""What all tests share: expected files that one reads, rewritten by `pytest --accept`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

# Threads of torch's that wait busily for each other take minutes on a machine that does other work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--accept", action="store_true", help="rewrite expected files; then read the diff"
    )


@pytest.fixture
def expect(request: pytest.FixtureRequest) -> Callable[[str, Path], None]:
    """Compare a text with the file that holds what is expected."""

    def compare(text: str, expected: Path) -> None:
        if request.config.getoption("--accept"):
            expected.write_text(text, encoding="utf-8")
        assert expected.exists(), f"{expected} is missing: run `pytest --accept` and read it"
        assert text == expected.read_text(encoding="utf-8")

    return compare
