"""Prints what a script can see of how it was started."""

import os
import signal
import sys
import threading

for name in ("__name__", "__file__", "__package__", "__doc__", "__cached__"):
    print(name, globals()[name])
print("spec", getattr(__spec__, "name", None))
print("loader", type(__loader__).__name__)
print("main", sys.modules["__main__"].__dict__ is globals())
print("argv", sys.argv)
print("orig_argv", getattr(sys, "orig_argv", None))
print("path", sys.path)
print("cwd", os.getcwd())
print("environment", {k: v for k, v in sorted(os.environ.items()) if k != "ROOFLINT"})
print("threads", [thread.name for thread in threading.enumerate()])
print("interrupt", signal.getsignal(signal.SIGINT))
for number in (signal.SIGTERM, signal.SIGUSR1):
    print("signals", signal.getsignal(number), signal.signal(number, signal.SIG_IGN))
    print("signals", signal.signal(number, signal.SIG_DFL), signal.getsignal(number))
print("hooks", sys.excepthook is sys.__excepthook__, sys.stdout is sys.__stdout__)
print("stdin", sys.stdin.read())

ending = sys.argv[1]
if ending in ("end", "raise", "os._exit", "interrupt"):
    import torch

    print("torch", torch.ones(3).sum().item(), torch.initial_seed() != 0)
    print("meta path", [str(finder)[:30] for finder in sys.meta_path])
    if not torch.version.cuda:  # CUDA's profiler opens some of its own
        print("file descriptors", sorted(os.listdir("/proc/self/fd")))


def fail():
    raise ValueError("as the script wants it")


if ending == "raise":
    fail()
elif ending == "exit":
    sys.exit(3)
elif ending == "message":
    sys.exit("a message")
elif ending == "os._exit":
    sys.stdout.flush()
    os._exit(4)
elif ending == "hook":
    sys.excepthook = lambda kind, value, traceback: print(
        "hook", kind, traceback.tb_frame.f_code.co_name, value.__traceback__ is traceback
    )
    fail()
elif ending == "interrupt":
    os.kill(os.getpid(), signal.SIGINT)
