import torch
from torch import nn


class Curriculum:
    def __init__(self, levels=(0.2, 0.5, 1.0), goal=0.9):
        self.levels, self.goal, self.at = levels, goal, 0

    @property
    def limit(self):
        return self.levels[self.at]

    def select(self, losses):
        cut = torch.quantile(losses, self.limit)
        return losses[losses <= cut].mean()

    def maybe_advance(self, accuracy):
        if accuracy > self.goal and self.at < len(self.levels) - 1:
            self.at += 1
            return True
        return False


def train(n=8):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = nn.Linear(6, 2).to(device)
    opt = torch.optim.RMSprop(model.parameters(), lr=0.01)
    plan = Curriculum()
    for _ in range(n):
        x = torch.randn(32, 6, device=device)
        y = (x[:, 0] > 0).long()
        out = model(x)
        loss = plan.select(nn.functional.cross_entropy(out, y, reduction="none"))
        opt.zero_grad()
        loss.backward()
        opt.step()
        acc = out.argmax(-1).eq(y).float().mean()
        if plan.maybe_advance(acc):
            print("level up")
    return plan.at


print(train() >= 0)
