"""Runs inside the user's Python: starts the script, marks lines, writes a recording."""
