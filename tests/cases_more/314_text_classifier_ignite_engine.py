import torch
from torch import nn


class State:
    def __init__(self):
        self.iteration, self.epoch, self.output, self.metrics = 0, 0, None, {}


class Engine:
    def __init__(self, process):
        self.process, self.handlers, self.state = process, {}, State()

    def on(self, event):
        def decorator(fn):
            self.handlers.setdefault(event, []).append(fn)
            return fn

        return decorator

    def add_event_handler(self, event, fn, *args):
        self.handlers.setdefault(event, []).append(lambda engine: fn(engine, *args))

    def fire(self, event):
        for fn in self.handlers.get(event, []):
            fn(self)

    def run(self, data, max_epochs):
        for _ in range(max_epochs):
            self.state.epoch += 1
            for batch in data:
                self.state.iteration += 1
                self.state.output = self.process(self, batch)
                self.fire("iteration_completed")
            self.fire("epoch_completed")
        return self.state


def running_average(engine, name, alpha):
    old = engine.state.metrics.get(name)
    value = engine.state.output["loss"].item()
    engine.state.metrics[name] = value if old is None else alpha * old + (1 - alpha) * value


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    seen = []

    def update(engine, batch):
        x, y = batch
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.detach(), "n": len(y)}

    trainer = Engine(update)
    trainer.add_event_handler("iteration_completed", running_average, "loss", 0.9)

    @trainer.on("iteration_completed")
    def keep(engine):
        seen.append(engine.state.output["n"])

    @trainer.on("epoch_completed")
    def report(engine):
        print(engine.state.epoch, engine.state.metrics["loss"] > 0)

    trainer.run([(torch.randn(8, 5), torch.randint(0, 2, (8,))) for _ in range(5)], max_epochs=2)
    print(sum(seen))


main()
