from collections import defaultdict

import torch
from torch import nn


class LightningModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.logged = defaultdict(list)

    @property
    def device(self):
        return next(self.parameters()).device

    def log(self, name, value):
        if isinstance(value, torch.Tensor):
            value = value.detach().item()
        self.logged[name].append(value)

    def log_dict(self, d):
        for k, v in d.items():
            self.log(k, v)


class Classifier(LightningModule):
    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))

    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self.net(x)
        loss = nn.functional.cross_entropy(out, y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        out = self.net(x)
        self.log_dict({"val_acc": (out.argmax(1) == y).float().mean(), "val_n": len(y)})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class Trainer:
    def __init__(self, epochs=2, accelerator="gpu"):
        self.epochs = epochs
        self.device = torch.device("cuda" if accelerator == "gpu" and torch.cuda.is_available() else "cpu")

    def fit(self, module, train, val):
        module.to(self.device)
        opt = module.configure_optimizers()
        for _ in range(self.epochs):
            for i, batch in enumerate(train):
                batch = tuple(t.to(self.device) for t in batch)
                loss = module.training_step(batch, i)
                opt.zero_grad()
                loss.backward()
                opt.step()
            with torch.no_grad():
                for i, batch in enumerate(val):
                    module.validation_step(tuple(t.to(self.device) for t in batch), i)


torch.manual_seed(0)
sets = [[(torch.randn(8, 10), torch.randint(0, 3, (8,))) for _ in range(4)] for _ in range(2)]
m = Classifier(1e-3)
Trainer().fit(m, *sets)
print({k: len(v) for k, v in m.logged.items()})
