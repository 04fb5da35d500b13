import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler


class Texts(Dataset):
    def __init__(self, n=40):
        g = torch.Generator().manual_seed(0)
        self.items = [torch.randint(1, 20, (int(torch.randint(2, 9, (1,), generator=g)),), generator=g) for _ in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class BucketSampler(Sampler):
    def __init__(self, data, size):
        order = sorted(range(len(data)), key=lambda i: len(data[i]))
        self.batches = [order[i : i + size] for i in range(0, len(order), size)]

    def __iter__(self):
        random.shuffle(self.batches)
        return iter(self.batches)

    def __len__(self):
        return len(self.batches)


def pad(items):
    lengths = torch.tensor([len(t) for t in items])
    out = nn.utils.rnn.pad_sequence(items, batch_first=True)
    mask = torch.arange(out.shape[1])[None] < lengths[:, None]
    return out, mask, int(lengths.sum())


def main():
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    emb = nn.Embedding(20, 6).to(device)
    opt = torch.optim.SGD(emb.parameters(), lr=0.1)
    data = Texts()
    loader = DataLoader(data, batch_sampler=BucketSampler(data, 8), collate_fn=pad, pin_memory=device.type == "cuda")
    tokens = 0
    for ids, mask, n in loader:
        ids, mask = ids.to(device, non_blocking=True), mask.to(device, non_blocking=True)
        loss = (emb(ids).square().sum(-1) * mask).sum() / n
        opt.zero_grad()
        loss.backward()
        opt.step()
        tokens += n
    print(tokens)


main()
