"""Trains in many ways, and writes down its operators, among what stand-ins for CUDA are told."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site-packages"))

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from standins import told
from telling import Tell


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        doubled = gradient * 2
        return doubled


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.block = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8))
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.lstm = nn.LSTM(8, 8)
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = layer(x).relu() + x
        x = checkpoint(self.block, x, use_reentrant=False)
        x[0] = x[0] * 2
        x, _ = self.lstm(x[None])
        x = self.encoder(x)
        return Double.apply(x)


def penalty(model, x):
    x = x.clone().requires_grad_()
    out = model.first(x).tanh().sum()
    (gradient,) = torch.autograd.grad(out, x, create_graph=True)
    return (gradient.norm(dim=1) - 1).square().mean()


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
data = torch.randn(4, 8)
with Tell():
    for step in range(25):
        losses = [part for part in (model(data).square().mean() for _ in range(2))]
        loss = sum(losses) + penalty(model, data)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        told.append(f"end of step {step}")
print(*told, sep="\n")
