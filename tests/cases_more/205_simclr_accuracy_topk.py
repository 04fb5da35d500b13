import torch
import torch.nn.functional as F
from torch import nn


class ResNetSimCLR(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(12, 16), nn.ReLU())
        self.head = nn.Linear(16, dim)

    def forward(self, x):
        return F.normalize(self.head(self.backbone(x)), dim=1)


class SimCLR:
    def __init__(self, args):
        self.args = args
        self.model = ResNetSimCLR().to(args["device"])
        self.optimizer = torch.optim.Adam(self.model.parameters(), 3e-4)
        self.criterion = nn.CrossEntropyLoss().to(args["device"])

    def info_nce(self, features):
        n = self.args["batch_size"]
        labels = torch.cat([torch.arange(n) for _ in range(2)], dim=0)
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
        labels = labels.to(self.args["device"])
        sim = features @ features.T
        mask = torch.eye(2 * n, dtype=torch.bool).to(self.args["device"])
        labels = labels[~mask].view(2 * n, -1)
        sim = sim[~mask].view(2 * n, -1)
        positives = sim[labels.bool()].view(2 * n, -1)
        negatives = sim[~labels.bool()].view(2 * n, -1)
        logits = torch.cat([positives, negatives], dim=1)
        target = torch.zeros(logits.shape[0], dtype=torch.long).to(self.args["device"])
        return logits / 0.07, target

    def train(self, steps=6):
        for n_iter in range(steps):
            images = torch.cat([torch.randn(8, 12), torch.randn(8, 12)]).to(self.args["device"])
            logits, target = self.info_nce(self.model(images))
            loss = self.criterion(logits, target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if n_iter % 100 == 0:
                top1 = (logits.argmax(1) == target).float().mean()
                print("acc", top1.item() >= 0)


torch.manual_seed(0)
SimCLR({"device": "cuda" if torch.cuda.is_available() else "cpu", "batch_size": 8}).train()
