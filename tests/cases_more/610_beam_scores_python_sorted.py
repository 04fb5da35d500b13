import torch
from torch import nn


class Hypothesis:
    __slots__ = ("tokens", "score", "state")

    def __init__(self, tokens, score, state):
        self.tokens, self.score, self.state = tokens, score, state

    def __lt__(self, other):
        return bool(self.score < other.score)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(9, 5)
        self.cell = nn.RNNCell(5, 5)
        self.proj = nn.Linear(5, 9)

    def forward(self, token, state):
        state = self.cell(self.emb(token).view(1, -1), state)
        return self.proj(state).log_softmax(-1)[0], state


@torch.no_grad()
def beam(dec, width, steps, dev):
    start = Hypothesis([torch.tensor(1, device=dev)], torch.zeros((), device=dev), torch.zeros(1, 5, device=dev))
    beams = [start]
    for _ in range(steps):
        grown = []
        for hyp in beams:
            logp, state = dec(hyp.tokens[-1], hyp.state)
            best, ids = logp.topk(width)
            for s, t in zip(best, ids):
                grown.append(Hypothesis(hyp.tokens + [t], hyp.score + s, state))
        grown.sort(reverse=True)
        beams = grown[:width]
    return beams[0].tokens


dev = "cuda" if torch.cuda.is_available() else "cpu"
dec = Decoder().to(dev)
print(len(beam(dec, 3, 4, dev)))
