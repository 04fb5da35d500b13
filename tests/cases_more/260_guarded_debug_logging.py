import logging

import torch
from torch import nn

logger = logging.getLogger("train")
logger.setLevel(logging.INFO)


class Trainer:
    def __init__(self, verbose=False):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.verbose = verbose
        self.net = nn.Linear(4, 4).to(self.device)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.running = torch.zeros((), device=self.device)

    def step(self, i):
        loss = self.net(torch.randn(8, 4, device=self.device)).square().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.running += loss.detach()
        logger.debug("step %d loss %s", i, loss)
        if (i + 1) % 100 == 0:
            logger.info("mean loss %.4f", (self.running / 100).item())
            self.running.zero_()


torch.manual_seed(0)
t = Trainer()
for i in range(12):
    t.step(i)
print("steps", i + 1)
