import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


class Pool:
    def __init__(self, dataset, n_start):
        self.dataset = dataset
        self.labelled = list(range(n_start))
        self.unlabelled = list(range(n_start, len(dataset)))

    def loader(self, which, size=8, **kw):
        return DataLoader(Subset(self.dataset, getattr(self, which)), batch_size=size, **kw)

    def move(self, positions):
        chosen = [self.unlabelled[i] for i in positions]
        self.labelled += chosen
        self.unlabelled = [i for i in self.unlabelled if i not in set(chosen)]


def entropies(model, loader, device):
    scores = []
    model.eval()
    with torch.no_grad():
        for x, _ in loader:
            p = model(x.to(device)).softmax(-1)
            scores.extend((-(p * p.log()).sum(-1)).tolist())
    return scores


def fit(model, loader, device, epochs=2):
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    for _ in range(epochs):
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            opt.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            opt.step()


def main(rounds=2, per_round=4):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    pool = Pool(TensorDataset(torch.randn(40, 5), torch.randint(0, 3, (40,))), 12)
    for r in range(rounds):
        model = nn.Linear(5, 3).to(device)
        fit(model, pool.loader("labelled", shuffle=True), device)
        scores = entropies(model, pool.loader("unlabelled"), device)
        ranked = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        pool.move(ranked[:per_round])
    return len(pool.labelled)


print(main())
