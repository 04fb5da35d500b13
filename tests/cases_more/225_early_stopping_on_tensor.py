import torch
from torch import nn


class EarlyStopping:
    def __init__(self, patience=3, delta=0.0):
        self.patience, self.delta = patience, delta
        self.best_score, self.counter, self.early_stop = None, 0, False
        self.saved = None

    def __call__(self, val_loss, model):
        score = -val_loss
        if self.best_score is None:
            self.best_score = score
        elif score < self.best_score + self.delta:
            self.counter += 1
            if self.counter >= self.patience:
                self.early_stop = True
        else:
            self.best_score = score
            self.counter = 0
            self.saved = {k: v.clone() for k, v in model.state_dict().items()}


def batches(n, device):
    for _ in range(n):
        yield torch.randn(8, 4, device=device), torch.randn(8, 1, device=device)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = nn.Linear(4, 1).to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    stopper = EarlyStopping(patience=50)
    best = float("inf")
    for x, y in batches(10, device):
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        stopper(loss.detach(), model)
        if stopper.early_stop:
            break
        best = loss.detach() if loss.detach() < best else best
    print(stopper.counter >= 0)


main()
