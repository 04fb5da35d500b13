"""Training loops of many shapes; prints how often the step loop went round."""

import itertools
import sys
import time

import torch


def model_and_optimizer():
    model = torch.nn.Linear(8, 8)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def step(model, *optimizers):
    loss = model(torch.randn(4, 8)).sum()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()


def gan():
    generator, first = model_and_optimizer()
    critic, second = model_and_optimizer()
    for i in range(12):  # the loop
        step(critic, second)
        step(generator, first)
    return i + 1


def critics():
    generator, first = model_and_optimizer()
    critic, second = model_and_optimizer()
    for i in range(12):  # the loop
        for _ in range(5):
            step(critic, second)
        step(generator, first)
    return i + 1


def many():
    model, first = model_and_optimizer()
    second = torch.optim.SGD(model.parameters(), lr=0.01)
    for i in range(12):  # the loop
        step(model, first, second)
    return i + 1


def forever():
    model, optimizer = model_and_optimizer()
    counter = itertools.count(1)
    while True:  # the loop
        i = next(counter)
        step(model, optimizer)
        if i == 12:
            break
    return i


def accumulate():
    model, optimizer = model_and_optimizer()
    for i in range(24):  # the loop
        model(torch.randn(4, 8)).sum().backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    return i + 1


def epochs():
    model, optimizer = model_and_optimizer()

    def epoch():
        for _ in range(4):  # the loop
            step(model, optimizer)

    for _ in range(5):
        epoch()
        with torch.no_grad():
            model(torch.randn(4, 8))
    return 20


def policy():
    model, optimizer = model_and_optimizer()
    for i in range(20):  # the loop
        for _ in range(30):
            with torch.no_grad():
                model(torch.randn(4, 8))
        time.sleep(0.01)
        for _ in range(2):
            step(model, optimizer)
    return i + 1


def one_line():
    model, optimizer = model_and_optimizer()
    for i in range(12): step(model, optimizer)  # the loop
    return i + 1


def comprehension():
    model, optimizer = model_and_optimizer()
    return len([step(model, optimizer) for _ in range(12)])


def generator():
    model, optimizer = model_and_optimizer()

    def steps():
        for i in range(12):  # the loop
            step(model, optimizer)
            yield i

    return len(list(steps()))


def fails():
    model, optimizer = model_and_optimizer()
    for i in range(12):  # the loop
        step(model, optimizer)
        if i == 9:
            raise RuntimeError("loss is nan")


def profiles():
    model, optimizer = model_and_optimizer()
    twice = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
    with torch.profiler.profile(schedule=twice, on_trace_ready=show_trace) as profiler:
        for i in range(30):  # the loop
            step(model, optimizer)
            profiler.step()
    return i + 1


def show_trace(profiler):
    names = [event.name for event in profiler.events()]
    print([name for name in names if "step#" in name or ".py:" in name])


print("steps", globals()[sys.argv[1]]())
