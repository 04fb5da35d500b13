import torch
from torch import nn


def class_weights(labels, n):
    counts = torch.bincount(labels, minlength=n).float()
    w = counts.sum() / (n * counts.clamp(min=1))
    print("rarest", w.argmax().item(), "weights", [round(v, 2) for v in w.tolist()])
    return w


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, y = torch.randn(64, 5), torch.randint(0, 3, (64,))
    mean, std = x.mean(0), x.std(0)
    assert not torch.isnan(std).any()
    x = ((x - mean) / std).to(device)
    y = y.to(device)
    criterion = nn.CrossEntropyLoss(weight=class_weights(y.cpu(), 3).to(device))
    model = nn.Linear(5, int(y.max()) + 1).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(10):
        i = (step * 16) % 64
        loss = criterion(model(x[i : i + 16]), y[i : i + 16])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("final", loss.item() > 0)


if __name__ == "__main__":
    main()
