"""Runs inside the user's Python: starts the script, opens the window, marks lines, writes a recording."""
