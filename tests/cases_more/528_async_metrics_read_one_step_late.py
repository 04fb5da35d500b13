import torch
from torch import nn


class LateReader:
    def __init__(self, device):
        self.device, self.history = device, []
        self.buffer, self.event = None, None

    def push(self, value):
        if self.device.type != "cuda":
            self.history.append(value)
            return
        if self.event is not None and self.event.query():
            self.history.append(self.buffer)
        self.buffer = value.detach().to("cpu", non_blocking=True)
        self.event = torch.cuda.Event()
        self.event.record()

    def close(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            self.history.append(self.buffer)
        return [float(v) for v in self.history]


def main(steps=10):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Linear(5, 1).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    reader = LateReader(device)
    for _ in range(steps):
        loss = net(torch.randn(8, 5, device=device)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        reader.push(loss)
    print(len(reader.close()) > 0)


main()
