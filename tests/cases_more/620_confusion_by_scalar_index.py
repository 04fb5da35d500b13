import torch
from torch import nn


class Confusion:
    def __init__(self, n):
        self.table = [[0] * n for _ in range(n)]

    def __iadd__(self, pair):
        for p, t in zip(*pair):
            self.table[t][p] += 1
        return self

    def per_class(self):
        return {i: row[i] / max(1, sum(row)) for i, row in enumerate(self.table)}


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    cm = Confusion(3)
    for x, y in loader:
        pred = model(x).argmax(-1)
        cm += (pred, y)
    return cm.per_class()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(5, 3).to(device)
loader = [(torch.randn(4, 5, device=device), torch.randint(3, (4,), device=device)) for _ in range(3)]
print(len(evaluate(model, loader, device)))
