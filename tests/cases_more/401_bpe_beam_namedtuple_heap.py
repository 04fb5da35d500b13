import heapq
import itertools
from typing import NamedTuple

import torch
from torch import nn


class Node(NamedTuple):
    neg_score: float
    order: int
    tokens: tuple
    hidden: torch.Tensor


class Decoder(nn.Module):
    def __init__(self, vocab=12, dim=10):
        super().__init__()
        self.emb, self.cell, self.out = nn.Embedding(vocab, dim), nn.GRUCell(dim, dim), nn.Linear(dim, vocab)

    def forward(self, token, h):
        h = self.cell(self.emb(token), h)
        return torch.log_softmax(self.out(h), -1), h


def best_first(model, h0, eos, limit=14, width=3):
    tie = itertools.count()
    heap = [Node(0.0, next(tie), (1,), h0)]
    expanded = 0
    while heap and expanded < limit:
        node = heapq.heappop(heap)
        if node.tokens[-1] == eos or len(node.tokens) > 6:
            return node
        token = torch.tensor([node.tokens[-1]], device=h0.device)
        logp, h = model(token, node.hidden)
        values, ids = logp[0].topk(width)
        for v, i in zip(values, ids):
            heapq.heappush(heap, Node(node.neg_score - v.item(), next(tie), (*node.tokens, int(i)), h))
        expanded += 1
    return heap[0]


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
net = Decoder().to(device).eval()
with torch.no_grad():
    found = [best_first(net, torch.randn(1, 10, device=device), eos=0) for _ in range(2)]
print(len(found))
