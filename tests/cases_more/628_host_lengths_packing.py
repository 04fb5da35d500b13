import random

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(11, 6, padding_idx=0)
        self.rnn = nn.LSTM(6, 5, batch_first=True)
        self.out = nn.Linear(5, 3)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.emb(tokens), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True, total_length=tokens.size(1))
        return self.out(h)


def sample(n):
    rows = [[random.randint(1, 10) for _ in range(random.randint(2, 6))] for _ in range(n)]
    lengths = torch.tensor([len(r) for r in rows])
    tokens = nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True)
    return tokens, lengths


class Counter:
    seen = 0

    def add(self, lengths):
        self.seen += lengths.sum().item()
        return max(lengths.tolist())


random.seed(0)
gpu = torch.cuda.is_available()
device = torch.device("cuda" if gpu else "cpu")
model = Tagger().to(device)
counter = Counter()
for _ in range(4):
    tokens, lengths = sample(4)
    longest = counter.add(lengths)
    assert tokens.shape[1] == longest
print(counter.seen)
