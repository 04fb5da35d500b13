import torch
from torch import nn


class Retriever(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.q, self.d = nn.Linear(6, dim), nn.Linear(6, dim)

    def score(self, queries, docs):
        return self.q(queries) @ self.d(docs).T


class RecallAtK:
    def __init__(self, ks):
        self.ks, self.hits, self.n = ks, dict.fromkeys(ks, 0), 0

    def update(self, ranked, relevant):
        for k in self.ks:
            if torch.isin(ranked[:k], relevant).any():
                self.hits[k] += 1
        self.n += 1

    def result(self):
        return {k: v / self.n for k, v in self.hits.items()}


def mrr(ranked, relevant):
    pos = (ranked == relevant[0]).nonzero()
    return 1.0 / (pos[0, 0].item() + 1) if len(pos) else 0.0


@torch.inference_mode()
def evaluate(model, queries, docs, qrels):
    metric, total = RecallAtK((1, 3)), 0.0
    scores = model.score(queries, docs)
    for qid in range(queries.shape[0]):
        _, ranked = torch.sort(scores[qid], descending=True)
        relevant = qrels[qid]
        metric.update(ranked, relevant)
        total += mrr(ranked, relevant)
    return metric.result(), total / queries.shape[0]


def main():
    torch.manual_seed(0)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Retriever().to(dev).eval()
    queries, docs = torch.randn(6, 6, device=dev), torch.randn(12, 6, device=dev)
    qrels = torch.randint(0, 12, (6, 2), device=dev)
    print(sorted(evaluate(model, queries, docs, qrels)[0]))


main()
