import time

import torch
from torch import nn


def train_epoch(model, opt, batches):
    start_time = time.time()
    n = 0
    for x, y in batches:
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        n += x.shape[0]
    elapsed = time.time() - start_time
    return n / elapsed


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Linear(16, 1).to(device)
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    data = [(torch.randn(8, 16, device=device), torch.randn(8, 1, device=device)) for _ in range(8)]
    for epoch in range(3):
        speed = train_epoch(net, sgd, data)
        print(f"epoch {epoch}: fast enough {speed > 0}")
