import torch
from torch import nn


class TokenBudgetSampler:
    def __init__(self, lengths, budget):
        self.lengths = lengths
        self.budget = budget

    def __iter__(self):
        batch, longest = [], 0
        for i in torch.argsort(self.lengths).tolist():
            n = int(self.lengths[i])
            longest = max(longest, n)
            if batch and longest * (len(batch) + 1) > self.budget:
                yield batch
                batch, longest = [], n
            batch.append(i)
        if batch:
            yield batch


class Corpus:
    def __init__(self, n, device):
        self.tokens = torch.randint(0, 30, (n, 12), device=device)
        self.lengths = torch.randint(3, 12, (n,), device=device)

    def collate(self, rows):
        n = self.lengths[rows].max()
        return self.tokens[rows][:, :n]


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
corpus = Corpus(16, device)
model = nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 30)).to(device)
opt = torch.optim.Adam(model.parameters())
for rows in TokenBudgetSampler(corpus.lengths, 40):
    batch = corpus.collate(rows)
    loss = nn.functional.cross_entropy(model(batch[:, :-1]).transpose(1, 2), batch[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
