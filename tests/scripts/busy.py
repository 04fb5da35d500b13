"""Works in ways that take a known CPU time each, and prints it; nobody gives others a turn."""

import sys
import threading
import time


def double(number):
    twice = number * 2
    return twice  # a function too short to be interrupted


def short_functions(count):
    for number in range(count):
        double(number)


def library(count):
    for number in range(count):
        len(str(number).rjust(60).strip().split("1"))


def straight(count):
    for number in range(count):
        small = number & 1
        large = number**40 % 1000003
        small += large


def recursion(depth):
    if depth == 0:
        return 0
    return recursion(depth - 1) + recursion(depth - 1)


def bursts(count):
    for _ in range(count):
        time.sleep(0.004)
        straight(2000)


def on_a_thread():
    thread = threading.Thread(target=straight, args=(500_000,))
    thread.start()
    thread.join()


def timed(function, *arguments, clock=time.thread_time):
    start = clock()
    function(*arguments)
    return round(1e6 * (clock() - start))


WORK = {
    "short_functions": lambda: timed(short_functions, 5_000_000),
    "library": lambda: timed(library, 1_000_000),
    "straight": lambda: timed(straight, 500_000),
    "recursion": lambda: timed(recursion, 21),
    "bursts": lambda: timed(bursts, 200),
    "on_a_thread": lambda: timed(on_a_thread, clock=time.process_time),
}

time.sleep(1)  # whoever wants to look at this has begun by now
for name in sys.argv[1:]:
    print(name, WORK[name](), flush=True)
