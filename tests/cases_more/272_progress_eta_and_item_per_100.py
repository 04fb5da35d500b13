import time

import torch
from torch import nn


class Bar:
    def __init__(self, total):
        self.total, self.n, self.t0, self.text = total, 0, time.time(), ""

    def update(self, **kw):
        self.n += 1
        rate = self.n / max(time.time() - self.t0, 1e-9)
        eta = (self.total - self.n) / rate
        self.text = f"{self.n}/{self.total} eta {eta:.0f}s " + " ".join(f"{k}={v}" for k, v in kw.items())


def main(steps=12, every=100):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Linear(4, 1).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    bar = Bar(steps)
    window = torch.zeros((), device=device)
    for step in range(1, steps + 1):
        loss = net(torch.randn(8, 4, device=device)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        window += loss.detach()
        bar.update(step=step, lr=opt.param_groups[0]["lr"])
        if step % every == 0:
            print(step, (window / every).item())
            window.zero_()
    print(bar.n)


main()
