import torch
from torch import nn


class Callback:
    def on_batch_end(self, trainer):
        pass


class Progress(Callback):
    def __init__(self):
        self.lines = []
        self.mean = None

    def on_batch_end(self, trainer):
        loss = trainer.last_loss
        self.mean = loss if self.mean is None else 0.9 * self.mean + 0.1 * loss
        self.lines.append(f"step {trainer.step:04d} | loss {self.mean:.4f}")


class CountSamples(Callback):
    seen = 0

    def on_batch_end(self, trainer):
        self.seen += trainer.batch_size


class Trainer:
    def __init__(self, model, callbacks=()):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = model.to(self.device)
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.callbacks = list(callbacks)
        self.step = 0
        self.batch_size = 8
        self.last_loss = None

    def _emit(self, event):
        for cb in self.callbacks:
            getattr(cb, event)(self)

    def fit(self, steps):
        while self.step < steps:
            x = torch.randn(self.batch_size, 4, device=self.device)
            loss = self.model(x).abs().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.last_loss = loss.detach()
            self._emit("on_batch_end")
            self.step += 1


Trainer(nn.Linear(4, 4), [Progress(), CountSamples()]).fit(5)
