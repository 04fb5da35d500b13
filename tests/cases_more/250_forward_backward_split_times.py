import time
from collections import defaultdict

import torch
from torch import nn


def profile_steps(model, opt, device, n=10):
    spent = defaultdict(float)
    for _ in range(n):
        x = torch.randn(8, 12, device=device)
        t0 = time.time()
        loss = model(x).square().mean()
        t1 = time.time()
        opt.zero_grad()
        loss.backward()
        t2 = time.time()
        opt.step()
        t3 = time.time()
        spent["forward"] += t1 - t0
        spent["backward"] += t2 - t1
        spent["optimizer"] += t3 - t2
    return spent


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 1)).to(device)
    opt = torch.optim.AdamW(model.parameters())
    print({k: v > 0 for k, v in profile_steps(model, opt, device).items()})


if __name__ == "__main__":
    main()
