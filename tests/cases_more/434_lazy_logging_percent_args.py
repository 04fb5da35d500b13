import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


class Engine:
    def __init__(self, net, device):
        self.net, self.device = net.to(device), device
        self.opt = torch.optim.RMSprop(self.net.parameters(), lr=1e-3)
        log.debug("engine on %s with %d parameters", device, sum(p.numel() for p in net.parameters()))

    def step(self, i):
        x = torch.randn(8, 6, device=self.device)
        out = self.net(x)
        loss = out.square().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        log.debug("step %d loss %.3f shape %s", i, loss, tuple(out.shape))
        if log.isEnabledFor(logging.DEBUG):
            log.debug("weights %s", self.net.weight.norm().item())
        return f"{i}: {tuple(out.shape)} {out.dtype} {out.device.type}"


def main(steps=8):
    logging.basicConfig(level=logging.WARNING)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    engine = Engine(nn.Linear(6, 2), device)
    lines = [engine.step(i) for i in range(steps)]
    print(len(lines), lines[-1].startswith("7"))


main()
