"""How the tables of `flow/` are made: for maintainers, with torch installed; no user runs this.

`returns` writes what torch's functions return, from torch's own schemas; `waits` measures on a GPU
which operations make the host wait, those of `programs` and of `samples`, and writes down which.
"""
