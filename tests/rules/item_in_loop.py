import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(batches, log_every=10):
    total = 0.0
    hits = 0
    seen = 0
    for x, y in batches:
        out = model(x.to(device, non_blocking=True))
        target = y.to(device, non_blocking=True)
        loss = nn.functional.cross_entropy(out, target)
        loss.backward()
        optimizer.step()
        total += loss.item()  # want `loss.item()` waits for the GPU on every step
        hits += (out.argmax(1) == target).sum().item()  # want `(out.argmax(1) == target).sum().item()` every step of this loop
        seen += y.numel()  # fine: a host integer
    return total / seen, hits / seen


def log(batches):
    for step, x in enumerate(batches):
        loss = model(x.to(device, non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        value = loss.item()  # want `loss.item()` every step
        if step % 100 == 0:
            print(step, value)
            print(loss.item())  # want `loss.item()` on one step in


def hidden(loss):
    return {"loss": loss.detach().item()}  # want `loss.detach().item()` on every step of the loop at line


def rows(batches):
    for x in batches:
        loss = model(x.to(device, non_blocking=True)).mean()
        loss.backward()
        optimizer.step()
        hidden(loss)
        sizes = x.shape[0]  # fine: a host integer
        first = x.mean().item()  # fine: x lives on the host


data = [(torch.randn(4, 8), torch.randint(0, 2, (4,))) for _ in range(100)]
for epoch in range(3):
    loss, accuracy = train(data)
    print(loss, accuracy)
log(torch.randn(4, 8) for _ in range(100))
rows(torch.randn(4, 8) for _ in range(100))
final = model(torch.randn(4, 8, device=device)).mean()
print(final.item())  # fine: once, at the end

running = 0.0
shared = 0.0


def report():
    return shared


for step in range(100):
    loss = model(torch.randn(4, 8, device=device)).pow(2).mean()
    loss.backward()
    optimizer.step()
    running += loss.item()  # want `loss.item()` on every step of this loop
    shared += loss.item()  # want `loss.item()` on every step of this loop
print(running, report())


@torch.compile(backend="eager")
def compiled_loss(out):
    scale = out.abs().max().item()  # want `out.abs().max().item()` and breaks the graph of the compiled function
    return (out / scale).mean()


for step in range(100):
    compiled_loss(model(torch.randn(4, 8, device=device)))
