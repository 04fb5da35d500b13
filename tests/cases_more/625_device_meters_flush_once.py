import torch
from torch import nn


class DeviceMeter:
    def __init__(self, device):
        self.total = torch.zeros((), device=device)
        self.count = 0

    def update(self, value, n=1):
        self.total += value.detach() * n
        self.count += n

    def average(self):
        return self.total / max(1, self.count)


def train(model, batches, opt, meters):
    for x, y in batches:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        meters["loss"].update(loss, len(x))
        meters["acc"].update((out.argmax(1) == y).float().mean(), len(x))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(4, 3).to(device)
    opt = torch.optim.AdamW(model.parameters())
    batches = [(torch.randn(8, 4, device=device), torch.randint(3, (8,), device=device)) for _ in range(5)]
    meters = {k: DeviceMeter(device) for k in ("loss", "acc")}
    train(model, batches, opt, meters)
    values = torch.stack([m.average() for m in meters.values()]).tolist()
    print({k: f"{v:.3f}" for k, v in zip(meters, values)})


main()
