import torch
import torch.nn.functional as F
from torch import nn


class EpochStats:
    def __init__(self, classes, device):
        self.confusion = torch.zeros(classes, classes, device=device)
        self.loss, self.seen = torch.zeros((), device=device), 0

    def update(self, logits, y, loss):
        pred = F.one_hot(logits.argmax(-1), self.confusion.shape[0]).float()
        true = F.one_hot(y, self.confusion.shape[0]).float()
        self.confusion += true.T @ pred
        self.loss += loss.detach() * y.numel()
        self.seen += y.numel()

    def result(self):
        acc = self.confusion.diagonal().sum() / self.seen
        recall = self.confusion.diagonal() / self.confusion.sum(1).clamp(min=1)
        table = torch.cat([torch.stack([self.loss / self.seen, acc]), recall]).tolist()
        return {"loss": table[0], "acc": table[1], "recall": table[2:]}


def main(epochs=2):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Linear(6, 3).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.5)
    for epoch in range(epochs):
        stats = EpochStats(3, device)
        for _ in range(8):
            x, y = torch.randn(16, 6, device=device), torch.randint(0, 3, (16,), device=device)
            logits = net(x)
            loss = F.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            stats.update(logits, y, loss)
        r = stats.result()
        print(epoch, round(r["loss"], 3) > 0, len(r["recall"]))


main()
