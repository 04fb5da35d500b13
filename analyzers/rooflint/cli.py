"""The terminal: `rooflint check | profile | report | doctor | server`."""

from __future__ import annotations


def main(argv: list[str] | None = None) -> int:
    """Run one command; its exit code."""
    raise NotImplementedError(argv)
