import torch
import torch.nn.functional as F
from torch import nn


class RunningAverage:
    """Simple average over time."""

    def __init__(self):
        self.steps, self.total = 0, 0

    def update(self, val):
        self.total += val
        self.steps += 1

    def __call__(self):
        return self.total / float(self.steps)


def loss_fn_kd(outputs, labels, teacher_outputs, T=4.0, alpha=0.9):
    kd = F.kl_div(F.log_softmax(outputs / T, 1), F.softmax(teacher_outputs / T, 1), reduction="batchmean")
    return kd * alpha * T * T + F.cross_entropy(outputs, labels) * (1 - alpha)


def train_kd(student, teacher, batches, device):
    student.train()
    teacher.eval()
    opt = torch.optim.SGD(student.parameters(), lr=0.1)
    loss_avg, lines = RunningAverage(), []
    for i, (x, y) in enumerate(batches):
        with torch.no_grad():
            t = teacher(x)
        loss = loss_fn_kd(student(x), y, t)
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss_avg.update(loss.data)
        lines.append("loss={:05.3f}".format(loss_avg()))
    return lines


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(230)
    big = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3)).to(device)
    small = nn.Linear(10, 3).to(device)
    data = [(torch.randn(16, 10, device=device), torch.randint(0, 3, (16,), device=device)) for _ in range(6)]
    print(len(train_kd(small, big, data, device)))
