"""Settings from pyproject.toml and the editor, and suppressions in the source."""
