import torch
from torch import nn


class DeviceReplay:
    def __init__(self, capacity, shape, device):
        self.capacity, self.device = capacity, device
        self.data = torch.zeros(capacity, *shape, device=device)
        self.prio = torch.ones(capacity, device=device)
        self.pos = torch.zeros((), dtype=torch.long, device=device)
        self.full = False

    def __len__(self):
        return self.capacity if self.full else int(self.pos)

    def push(self, item):
        self.data[self.pos] = item
        self.prio[self.pos] = self.prio.max()
        self.pos += 1
        if self.pos == self.capacity:
            self.full = True
            self.pos.zero_()

    def sample(self, n):
        probs = self.prio[: len(self)]
        idx = torch.multinomial(probs / probs.sum(), n, replacement=True)
        return idx, self.data[idx]

    def update(self, idx, td):
        self.prio[idx] = td.abs() + 1e-3


def main(steps=24):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    buf, net = DeviceReplay(16, (3,), device), nn.Linear(3, 1).to(device)
    opt = torch.optim.Adam(net.parameters())
    for step in range(steps):
        buf.push(torch.randn(3, device=device))
        if step < 4:
            continue
        idx, batch = buf.sample(4)
        td = net(batch).squeeze(1)
        opt.zero_grad()
        td.square().mean().backward()
        opt.step()
        buf.update(idx, td.detach())
    return len(buf)


print(main())
