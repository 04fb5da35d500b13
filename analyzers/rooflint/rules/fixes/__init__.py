"""Quick fixes, one file per kind; each yields changes that keep the program's result.

`totals`, `histories` and `guarded` move a read to where it is needed; `reads` tries all three.
`copies` and `creation` spare the host a copy; `checks` leave out what only looks; `masks`,
`indices` and `sizes` say the same with known shapes; `clocks` and `arrivals` wait where one must;
`statements` take one out.
"""
