import torch
from torch import nn


class DynamicLossScaler:
    def __init__(self, scale=2.0**10, window=4):
        self.cur_scale, self.window = scale, window
        self.good = 0

    @staticmethod
    def _has_inf_or_nan(x):
        cpu_sum = float(x.float().sum())
        return cpu_sum == float("inf") or cpu_sum == -float("inf") or cpu_sum != cpu_sum

    def has_overflow(self, params):
        for p in params:
            if p.grad is not None and self._has_inf_or_nan(p.grad.data):
                return True
        return False

    def update_scale(self, overflow):
        if overflow:
            self.cur_scale, self.good = max(self.cur_scale / 2, 1), 0
        else:
            self.good += 1
            if self.good % self.window == 0:
                self.cur_scale *= 2


class FP16Optimizer:
    def __init__(self, opt, scaler):
        self.opt, self.scaler = opt, scaler

    def backward(self, loss):
        (loss.float() * self.scaler.cur_scale).backward()

    def step(self):
        params = [p for g in self.opt.param_groups for p in g["params"]]
        overflow = self.scaler.has_overflow(params)
        self.scaler.update_scale(overflow)
        if overflow:
            return False
        for p in params:
            p.grad.data.div_(self.scaler.cur_scale)
        self.opt.step()
        return True


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
    opt = FP16Optimizer(torch.optim.SGD(model.parameters(), lr=0.01), DynamicLossScaler())
    done = 0
    for _ in range(8):
        loss = model(torch.randn(4, 8, device=device)).square().mean()
        opt.opt.zero_grad()
        opt.backward(loss)
        done += opt.step()
    print(done)
