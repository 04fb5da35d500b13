"""Carries a report's lines through edits of the files."""
