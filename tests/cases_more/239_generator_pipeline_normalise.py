import torch
from torch import nn


def source(n):
    for i in range(n):
        yield torch.arange(12.0).view(3, 4) + i


def to_device(stream, device):
    for x in stream:
        yield x.to(device)


def normalise(stream):
    for x in stream:
        mu, sd = x.mean().item(), x.std().item()
        yield (x - mu) / (sd + 1e-6)


def only_bright(stream, level):
    for x in stream:
        if x.max() > level:
            yield x


def pipeline(device, n=8):
    return only_bright(normalise(to_device(source(n), device)), 0.5)


def consume(net, stream):
    outs = [net(x).sum() for x in stream]
    return torch.stack(outs)


if __name__ == "__main__":
    torch.manual_seed(0)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with torch.no_grad():
        print(consume(nn.Linear(4, 2).to(dev), pipeline(dev)).shape)
