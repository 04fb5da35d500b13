"""A program with frames of every kind."""

import sys
import threading


def work():
    x = 1
    for i in range(2):
        x += i
    return x


def numbers():
    yield 1
    try:
        yield 2
    finally:
        x = 3


def delegates():
    yield from numbers()


def raises(depth):
    if depth:
        raises(depth - 1)
    raise ValueError


def survives():
    try:
        raises(1)
    except ValueError:
        x = 1


class Context:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return True


def varies():
    """Python versions tell of other lines here; ranges are closed all the same."""
    with Context():
        raise ValueError
    x = [i for i in range(2)]
    for number in delegates():
        break


async def coroutine():
    x = 1
    await other()
    x = 2


async def other():
    x = 1


def main():
    work()
    for number in numbers():
        x = number
    survives()
    try:
        coroutine().send(None)
    except StopIteration:
        pass
    generator = numbers()
    next(generator)
    next(generator)
    try:
        generator.throw(KeyError)
    except KeyError:
        x = 2
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    sorted([2, 1], key=lambda x: -x)


def start(begin):
    begin(10_000)
    x = 1


def stop(end):
    end()


def goes_round(watch):
    watch(sys._getframe())
    for _ in range(2):
        work()
