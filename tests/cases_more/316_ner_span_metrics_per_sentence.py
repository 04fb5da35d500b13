import torch
from torch import nn

LABELS = ["O", "B-PER", "I-PER", "B-LOC"]


def spans(tags):
    out, start = set(), None
    for i, tag in enumerate([*tags, "O"]):
        if start is not None and not tag.startswith("I-"):
            out.add((start, i, tags[start][2:]))
            start = None
        if tag.startswith("B-"):
            start = i
    return out


class SeqEval:
    def __init__(self):
        self.tp = self.fp = self.fn = 0

    def add(self, pred, gold):
        p, g = spans(pred), spans(gold)
        self.tp += len(p & g)
        self.fp += len(p - g)
        self.fn += len(g - p)

    def f1(self):
        return 2 * self.tp / max(1, 2 * self.tp + self.fp + self.fn)


def align(predictions, label_ids):
    preds = [[] for _ in range(label_ids.shape[0])]
    golds = [[] for _ in range(label_ids.shape[0])]
    for i in range(label_ids.shape[0]):
        for j in range(label_ids.shape[1]):
            if label_ids[i, j] != -100:
                golds[i].append(LABELS[label_ids[i][j]])
                preds[i].append(LABELS[predictions[i][j]])
    return preds, golds


def compute_loss(logits, labels):
    active = labels.view(-1) != -100
    return nn.functional.cross_entropy(logits.view(-1, len(LABELS))[active], labels.view(-1)[active])


def run():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    tagger = nn.Sequential(nn.Embedding(40, 12), nn.Linear(12, len(LABELS))).to(device)
    opt = torch.optim.Adam(tagger.parameters(), 1e-2)
    metric = SeqEval()
    for _ in range(3):
        ids = torch.randint(0, 40, (2, 6)).to(device)
        labels = torch.randint(0, 4, (2, 6)).to(device)
        labels[:, 0] = -100
        logits = tagger(ids)
        loss = compute_loss(logits, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        for p, g in zip(*align(logits.argmax(-1), labels)):
            metric.add(p, g)
    return metric.f1()


print(run() >= 0)
