"""Where each value lives, which loops run it, which helpers hide a wait.

`values` are what names can stand for, `machine` the state while a file is followed, `facts` what
comes out of it. `interpreter` hands each node to the room that knows it: `statements`, `branches`,
`loops`, `definitions`, `names`, `calls`, `operators`, `displays`; `unasked` follows what nothing
calls and `candidates` lets through, `other_files` what is asked for of other files, as `bindings`
finds it. What is called outside of the files goes to `library`, and from there to `python_calls`,
`standard`, `workers`, `tensors`, `making`, `objects`, `training`, `loaders`, `distributions`,
`metrics`, `containers` and `text`, all by the data of `torch_calls`, `torch_returns` and
`torch_waits`; `waiting` says which calls wait. `special` and `matching` are the operators of the
program's classes and the patterns of `match`, `autograd` its functions with a backward of their
own. `arrivals` are copies to the host that nothing has waited for yet; `compiled` is what
torch.compile was given; `switches` slow every step while they are on. `indexing`, `timing`,
`type_checks` and `places` say what their names say. `program` and `project` are the files,
`imports` whom they import, `follow` and `again` what following one found, `told` what it says of
others, to be handed on (`written`).
"""

from rooflint.flow.facts import CallFrom, Loop, Stop, Timing, Wait
from rooflint.flow.follow import DeviceFlow, Following, together
from rooflint.flow.imports import Imports
from rooflint.flow.program import Program
from rooflint.flow.project import Project
from rooflint.flow.told import Told, hear, tell
from rooflint.flow.values import Site

__all__ = [
    "CallFrom",
    "DeviceFlow",
    "Following",
    "Imports",
    "Loop",
    "Program",
    "Project",
    "Site",
    "Stop",
    "Timing",
    "Told",
    "Wait",
    "hear",
    "tell",
    "together",
]
