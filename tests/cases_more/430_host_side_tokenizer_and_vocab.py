import re
from collections import Counter

import torch
from torch import nn


class Vocab:
    def __init__(self, texts, size=20):
        counts = Counter(w for t in texts for w in re.findall(r"\w+", t.lower()))
        self.words = ["<pad>", "<unk>"] + [w for w, _ in counts.most_common(size)]
        self.index = {w: i for i, w in enumerate(self.words)}

    def encode(self, text):
        ids = torch.tensor([self.index.get(w, 1) for w in re.findall(r"\w+", text.lower())])
        unknown = (ids == 1).float().mean().item()
        return ids if unknown < 0.9 else torch.tensor([1])

    def decode(self, ids):
        return " ".join(self.words[i] for i in ids.tolist() if i > 0)


def pad(seqs):
    width = max(s.numel() for s in seqs)
    out = torch.zeros(len(seqs), width, dtype=torch.long)
    for row, s in zip(out, seqs):
        row[: len(s)] = s
    if (out.sum(1) == 0).any():
        raise ValueError("an empty text")
    return out


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    texts = ["the cat sat", "a dog ran far away", "the dog sat", "cats and dogs"] * 3
    vocab = Vocab(texts)
    model = nn.EmbeddingBag(len(vocab.words), 6, padding_idx=0).to(device)
    batch = pad([vocab.encode(t) for t in texts])
    print(vocab.decode(batch[0]))
    ids = batch.to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        loss = model(ids).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss


print(main().item() > 0)
