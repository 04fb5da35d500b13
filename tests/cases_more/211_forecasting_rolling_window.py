import math

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, window=6):
        super().__init__()
        self.window = window
        self.net = nn.Sequential(nn.Linear(window, 12), nn.Tanh(), nn.Linear(12, 1))

    def forward(self, x):
        return self.net(x)


def rolling(model, history, horizon, device):
    series = list(history)
    model.eval()
    for _ in range(horizon):
        window = torch.FloatTensor(series[-model.window :]).to(device)
        with torch.no_grad():
            series.append(model(window).item())
    return series[-horizon:]


def windows(series, k):
    return [(series[i : i + k], series[i + k : i + k + 1]) for i in range(len(series) - k)]


def fit(model, series, device, epochs=3):
    opt, crit = torch.optim.Adam(model.parameters(), 1e-2), nn.MSELoss()
    pairs = [(torch.tensor(a), torch.tensor(b)) for a, b in windows(series, model.window)]
    for epoch in range(epochs):
        for seq, label in pairs:
            opt.zero_grad()
            seq, label = seq.to(device), label.to(device)
            single_loss = crit(model(seq), label)
            single_loss.backward()
            opt.step()
        print(f"epoch {epoch} {single_loss.item() >= 0}")


dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
data = [math.sin(i / 3) for i in range(14)]
f = Forecaster().to(dev)
fit(f, data, dev)
print(len(rolling(f, data, 5, dev)))
