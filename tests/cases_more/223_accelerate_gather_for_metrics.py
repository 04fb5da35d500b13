import torch
from torch import nn


class DataLoaderShard:
    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield {k: v.to(self.device) for k, v in batch.items()}


class Accelerator:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def prepare(self, model, opt, loader):
        return model.to(self.device), opt, DataLoaderShard(loader, self.device)

    def backward(self, loss, **kw):
        loss.backward(**kw)

    def gather_for_metrics(self, pair):
        return tuple(t.detach().cpu() for t in pair)


class Metric:
    def __init__(self):
        self.hits, self.n = 0, 0

    def add_batch(self, predictions, references):
        self.hits += (predictions == references).sum().item()
        self.n += len(references)


def training_function():
    torch.manual_seed(42)
    accelerator = Accelerator()
    model = nn.Linear(7, 3)
    data = [{"x": torch.randn(8, 7), "labels": torch.randint(0, 3, (8,))} for _ in range(5)]
    model, opt, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1), data)
    total_loss = 0
    for epoch in range(2):
        for step, batch in enumerate(loader):
            loss = nn.functional.cross_entropy(model(batch["x"]), batch["labels"])
            total_loss += loss.detach().float()
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
        metric = Metric()
        for step, batch in enumerate(loader):
            with torch.no_grad():
                outputs = model(batch["x"])
            predictions = outputs.argmax(dim=-1)
            predictions, references = accelerator.gather_for_metrics((predictions, batch["labels"]))
            metric.add_batch(predictions=predictions, references=references)
        print(epoch, metric.n, total_loss.item() / len(loader) > 0)


if __name__ == "__main__":
    training_function()
