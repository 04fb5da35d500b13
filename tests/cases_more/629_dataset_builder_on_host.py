import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Spirals(Dataset):
    def __init__(self, n):
        angle = torch.rand(n) * 6.28
        self.rows = []
        for a in angle:
            side = int(a > 3.14)
            self.rows.append((a.cos().item() * a.item(), a.sin().item(), side))
        self.weights = torch.tensor([1.0 + r[2] for r in self.rows])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        x, y, side = self.rows[i]
        return torch.tensor([x, y]), side

    def class_share(self):
        labels = torch.tensor([r[2] for r in self.rows])
        return {c.item(): (labels == c).float().mean().item() for c in labels.unique()}


def main():
    data = Spirals(24)
    loader = DataLoader(data, batch_size=8, shuffle=True)
    share = data.class_share()
    xs, ys = [], []
    for x, y in loader:
        if x.abs().max() < 100 and bool((y >= 0).all()):
            xs.append(x)
            ys.append(y)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x, y = torch.cat(xs).to(device), torch.cat(ys).to(device)
    net = nn.Linear(2, 2).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(len(share))


main()
