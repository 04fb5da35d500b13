import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, vocab=20, dim=16):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(vocab, dim), nn.GRUCell(dim, dim), nn.Linear(dim, vocab)

    def step(self, tok, h):
        h = self.rnn(self.emb(tok), h)
        return self.out(h).log_softmax(-1), h


class Hypothesis:
    def __init__(self, tokens, score):
        self.tokens, self.score = tokens, score

    def extend(self, token, logp):
        return Hypothesis(self.tokens + [token], self.score + logp)


def beam_search(model, device, width=3, max_len=8, bos=1, eos=2):
    h = torch.zeros(1, 16, device=device)
    beams, done = [Hypothesis([bos], 0.0)], []
    for _ in range(max_len):
        tok = torch.tensor([b.tokens[-1] for b in beams], device=device)
        logp, h = model.step(tok, h)
        top, idx = logp.topk(width, dim=-1)
        pool = []
        for row, beam in enumerate(beams):
            for lp, token in zip(top[row].tolist(), idx[row].tolist()):
                pool.append((row, beam.extend(token, lp)))
        pool.sort(key=lambda p: p[1].score, reverse=True)
        keep = [p for p in pool if p[1].tokens[-1] != eos][:width]
        done += [p[1] for p in pool if p[1].tokens[-1] == eos][:1]
        h = h[[row for row, _ in keep]]
        beams = [b for _, b in keep]
    return max(done + beams, key=lambda b: b.score)


torch.manual_seed(1)
dev = "cuda" if torch.cuda.is_available() else "cpu"
model = Decoder().to(dev).eval()
with torch.inference_mode():
    print(len(beam_search(model, dev).tokens) > 1)
