"""A hand-written Trainer class with gradient accumulation and callbacks."""

import torch
from torch import nn


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        sigmoid = torch.sigmoid(x)
        return gradient * sigmoid * (1 + x * (1 - sigmoid))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8192, 768)
        self.rnn = nn.LSTM(768, 768, batch_first=True)
        self.up = nn.Linear(768, 3072)
        self.head = nn.Linear(3072, 8192)

    def forward(self, ids):
        x = self.embed(ids)
        x, _ = self.rnn(x)
        x = self.up(x)
        x = Swish.apply(x)
        return self.head(x)


class Trainer:
    def __init__(self, model, optimizer, accumulate=2):
        self.model, self.optimizer, self.accumulate = model, optimizer, accumulate
        self.callbacks = [self.clip]

    def clip(self):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)

    def compute_loss(self, batch):
        inputs, labels = batch[:, :-1], batch[:, 1:]
        logits = self.model(inputs)
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    def train_step(self, batches):
        for batch in batches:
            loss = self.compute_loss(batch) / self.accumulate
            loss.backward()
        for callback in self.callbacks:
            callback()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss

    def train(self, steps):
        for _ in range(steps):
            batches = torch.randint(0, 8192, (self.accumulate, 16, 65)).to("cuda")
            loss = self.train_step(batches)
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Net().cuda()
    print(Trainer(model, torch.optim.AdamW(model.parameters(), lr=1e-4)).train(24))
