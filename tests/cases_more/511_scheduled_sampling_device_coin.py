import torch
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, vocab=18, dim=10):
        super().__init__()
        self.emb, self.enc = nn.Embedding(vocab, dim), nn.GRU(dim, dim, batch_first=True)
        self.cell, self.out = nn.GRUCell(dim, dim), nn.Linear(dim, vocab)

    def forward(self, src, src_len, tgt, ratio):
        packed = nn.utils.rnn.pack_padded_sequence(self.emb(src), src_len.cpu(), batch_first=True, enforce_sorted=False)
        _, h = self.enc(packed)
        h = h[0]
        tok, logits = tgt[:, 0], []
        for t in range(1, tgt.shape[1]):
            h = self.cell(self.emb(tok), h)
            step = self.out(h)
            logits.append(step)
            if torch.rand((), device=src.device) < ratio:
                tok = tgt[:, t]
            else:
                tok = step.argmax(-1)
        return torch.stack(logits, 1)


def trim(batch, lengths):
    return batch[:, : lengths.max()]


def main(steps=4):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = Seq2Seq().to(device)
    opt = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(steps):
        src = torch.randint(1, 18, (3, 7), device=device)
        src_len = torch.randint(3, 8, (3,), device=device)
        tgt = torch.randint(1, 18, (3, 5), device=device)
        src = trim(src, src_len)
        logits = model(src, src_len.clamp(max=src.shape[1]), tgt, 0.5)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.shape


print(main())
