import torch
import torch.nn.functional as F
from torch import nn

COUNTS = [10, 3, 5]


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, labels):
        weights = torch.tensor([1.0 / c for c in COUNTS]).to(logits)
        p = logits.softmax(-1).gather(1, labels[:, None]).squeeze(1)
        ce = F.cross_entropy(logits, labels, weight=weights, reduction="none")
        return ((1 - p) ** self.gamma * ce).mean()


def batches(n):
    for i in range(n):
        yield torch.randn(6, 4), [i % 3] * 6


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Linear(4, 3).to(device)
    criterion = FocalLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, labels in batches(5):
        x = x.to(device, non_blocking=True)
        y = torch.as_tensor(labels, device=device)
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
