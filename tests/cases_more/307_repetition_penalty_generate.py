import torch
import torch.nn.functional as F
from torch import nn


class LogitsProcessorList(list):
    def __call__(self, ids, scores):
        for processor in self:
            scores = processor(ids, scores)
        return scores


class RepetitionPenalty:
    def __init__(self, penalty):
        self.penalty = penalty

    def __call__(self, ids, scores):
        for row in range(ids.shape[0]):
            seen = torch.unique(ids[row])
            vals = scores[row, seen]
            scores[row, seen] = torch.where(vals < 0, vals * self.penalty, vals / self.penalty)
        return scores


class NoRepeatNGram:
    def __init__(self, n):
        self.n = n

    def __call__(self, ids, scores):
        for row, seq in enumerate(ids.tolist()):
            banned = {}
            for gram in zip(*[seq[i:] for i in range(self.n)]):
                banned.setdefault(tuple(gram[:-1]), []).append(gram[-1])
            block = banned.get(tuple(seq[-self.n + 1 :]), [])
            if block:
                scores[row, block] = -float("inf")
        return scores


class LM(nn.Module):
    def __init__(self, vocab=24, dim=16):
        super().__init__()
        self.wte, self.mix, self.head = nn.Embedding(vocab, dim), nn.Linear(dim, dim), nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(torch.tanh(self.mix(self.wte(ids).cumsum(1))))


@torch.no_grad()
def generate(model, input_ids, max_new_tokens, processors, eos=0, pad=0):
    unfinished = torch.ones(input_ids.shape[0], dtype=torch.long, device=input_ids.device)
    while input_ids.shape[1] < max_new_tokens:
        logits = model(input_ids)[:, -1, :]
        probs = F.softmax(processors(input_ids, logits), dim=-1)
        next_tokens = torch.multinomial(probs, num_samples=1).squeeze(1)
        next_tokens = next_tokens * unfinished + pad * (1 - unfinished)
        input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)
        unfinished = unfinished.mul((next_tokens != eos).long())
        if not unfinished.any():
            break
    return input_ids


if __name__ == "__main__":
    torch.manual_seed(5)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = LM().to(device).eval()
    prompt = torch.randint(1, 24, (2, 4), device=device)
    out = generate(model, prompt, 14, LogitsProcessorList([RepetitionPenalty(1.2), NoRepeatNGram(2)]))
    print(out.shape[1] > 4)
