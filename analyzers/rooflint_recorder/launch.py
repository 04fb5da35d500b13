"""The file that Python is started with: `launch.py CONFIG.json`, then what Python would be given.

That is a script, `-m` and a module, or `-c` and a text, and their arguments. Argv, path,
`__main__`, exit code and traceback are those of a plain run.
"""

import sys

HERE = __file__.rpartition("launch.py")[0] or "./"
if not getattr(sys.flags, "safe_path", sys.flags.isolated):  # safe_path: Python 3.11
    del sys.path[0]  # the recorder's folder; the script's own takes its place


def main() -> None:
    import importlib.util

    package = importlib.util.spec_from_file_location(
        "rooflint_recorder", HERE + "__init__.py", submodule_search_locations=[HERE.rstrip("/\\")]
    )
    assert package is not None and package.loader is not None
    module = importlib.util.module_from_spec(package)
    sys.modules["rooflint_recorder"] = module
    package.loader.exec_module(module)
    from rooflint_recorder.recorder import run

    words = sys.argv[1:]
    # DeepSpeed and torch.distributed.launch put their `--local_rank=0` right behind the script.
    options = [word for word in words[:2] if word.startswith("--local")]
    settings, *target = words[len(options) :]
    behind = 2 if target[0] == "-m" else 1
    target[behind:behind] = options
    orig_argv = getattr(sys, "orig_argv", [])
    run(settings, target, len(orig_argv) - len(sys.argv))


main()
