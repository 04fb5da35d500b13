"""Runs inside the user's Python: starts the script, marks lines, writes a recording.

- `launch`: the file that Python is started with; becomes the user's script
- `program`: runs a file or module as `__main__`, as Python itself would
- `notebook`: runs the cells of a notebook
- `recorder`: holds the parts together for one run
- `job`: which process of the run is recorded
- `signals`: handlers that the script does not see
- `spawned`: starts the processes that `multiprocessing` spawns through us
- `window`: which part of the run is recorded
- `plain_steps`: times a few steps with nothing in their way, and whether they are warm
- `steps`: finds the loop whose iterations are the steps
- `lookout`: finds it where no optimizer steps; `steady`: unless it is only loading something
- `calls`: finds the function whose calls are the steps, where there is no loop
- `stack`: the frames that this thread is in
- `main_thread`: calls a function on the main thread
- `imports`: says when the script has imported torch
- `marks`: a range per executed line of the user's own files
- `quiet`: which lines lose it, since they never reach torch
- `libraries`: which lines of libraries are marked too
- `sources`: which files are the user's own, their loops and functions
- `nvtx_ranges`: the script's NVTX ranges, made visible to torch's profiler
- `forks`: what is to be done where a process forks
- `endings`: how a forked copy ends
- `engine`: the thread that runs backward passes, which older Pythons do not see
- `clocks`: the clocks, whatever the script puts in their place
- `deadline`: ends a recording that takes too long
- `torch_profiler`: torch's profiler, started and stopped without being seen
- `anatomy`: where this Python keeps its stacks, for whoever looks at them from outside
- `counters`: the ranges that ncu is told to look at
- `traces`: whether the script has left anything behind
- `facts`: the device and the versions
- `peaks`: what a device reaches: products and copies, timed
- `folder`: writes the recording, atomically

Standard library and torch alone; Python 3.9 and torch 2.1 or newer.
"""
