"""The language server: turns the editor's questions into calls of the front door."""
