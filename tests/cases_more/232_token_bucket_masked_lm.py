import torch
from torch import nn


def mask_tokens(inputs, mask_id, vocab, prob=0.3):
    labels = inputs.clone()
    matrix = torch.full(labels.shape, prob, device=inputs.device)
    special = (labels == 0) | (labels == 1)
    matrix.masked_fill_(special, value=0.0)
    masked = torch.bernoulli(matrix).bool()
    labels[~masked] = -100
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8, device=inputs.device)).bool() & masked
    inputs[replaced] = mask_id
    rand = torch.bernoulli(torch.full(labels.shape, 0.5, device=inputs.device)).bool() & masked & ~replaced
    words = torch.randint(vocab, labels.shape, dtype=torch.long, device=inputs.device)
    inputs[rand] = words[rand]
    return inputs, labels


class MLM(nn.Module):
    def __init__(self, vocab=30, dim=16):
        super().__init__()
        self.emb, self.head = nn.Embedding(vocab, dim), nn.Linear(dim, vocab)

    def forward(self, ids, labels):
        hidden = self.emb(ids)
        active = labels.view(-1) != -100
        logits = self.head(hidden.view(-1, hidden.size(-1))[active])
        return nn.functional.cross_entropy(logits, labels.view(-1)[active]), logits


def main(steps=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = MLM().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    counted = 0
    for _ in range(steps):
        ids, labels = mask_tokens(torch.randint(0, 30, (4, 12), device=device), 29, 30)
        loss, logits = model(ids, labels)
        counted += logits.shape[0]
        loss.backward()
        opt.step()
        opt.zero_grad()
    return counted


print(main() > 0)
