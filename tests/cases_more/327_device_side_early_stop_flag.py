import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, vocab=20, dim=12):
        super().__init__()
        self.emb, self.cell, self.out = nn.Embedding(vocab, dim), nn.GRUCell(dim, dim), nn.Linear(dim, vocab)

    def forward(self, tok, h):
        h = self.cell(self.emb(tok), h)
        return self.out(h), h


VOCAB = [chr(97 + i) for i in range(20)]


def detokenise(rows, eos):
    texts = []
    for row in rows:
        row = row[: row.index(eos)] if eos in row else row
        texts.append("".join(VOCAB[i] for i in row))
    return texts


@torch.inference_mode()
def generate(model, batch, steps, device, eos=0):
    tok = torch.ones(batch, dtype=torch.long, device=device)
    h = torch.zeros(batch, 12, device=device)
    alive = torch.ones(batch, dtype=torch.bool, device=device)
    out = torch.full((batch, steps), eos, dtype=torch.long, device=device)
    for t in range(steps):
        logits, h = model(tok, h)
        tok = torch.where(alive, logits.argmax(-1), torch.full_like(tok, eos))
        out[:, t] = tok
        alive = alive & (tok != eos)
    return detokenise(out.tolist(), eos)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    texts = generate(Decoder().to(device).eval(), 4, 12, device)
    print(len(texts), max(len(t) for t in texts) <= 12)


main()
