# fix: Add it up on the GPU, read it once after the loop
import torch
from torch import nn

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(16, 8, device=device), torch.randint(0, 2, (16,), device=device)) for _ in range(40)]


def train():
    total, weighted, other = 0.0, 0.0, 0.0
    hits, seen = 0, 0
    for x, y in batches:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        weighted += loss.item() * x.size(0)
        other = other + float(loss)
        hits += (out.argmax(1) == y).sum().item()
        seen += y.numel()
    return total, weighted / seen, other, hits, seen


for epoch in range(2):
    print(epoch, train())

running = 0.0
for step, (x, y) in enumerate(batches):
    loss = nn.functional.cross_entropy(model(x), y)
    running += loss.item()
    if step % 20 == 19:
        print(step, running / 20, f"{running:.4f}")
        running = 0.0

large = 0
for x, y in batches:
    large += torch.full((4,), 2**30, dtype=torch.int32, device=device).max().item()
print(large)
