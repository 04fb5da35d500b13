import torch


def iou(a, b):
    lt = torch.maximum(a[:, None, :2], b[None, :, :2])
    rb = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda x: (x[:, 2:] - x[:, :2]).prod(-1)
    return inter / (area(a)[:, None] + area(b)[None] - inter)


class MatchCounter:
    def __init__(self, threshold=0.3):
        self.threshold = threshold
        self.tp = self.fp = 0

    def add(self, boxes, scores, truth):
        overlaps = iou(boxes, truth)
        used = set()
        for row in scores.argsort(descending=True):
            best, col = overlaps[row].max(0)
            key = col.item()
            if best >= self.threshold and key not in used:
                used.add(key)
                self.tp += 1
            else:
                self.fp += 1

    @property
    def precision(self):
        return self.tp / max(1, self.tp + self.fp)


def random_boxes(n, device):
    corner = torch.rand(n, 2, device=device)
    return torch.cat([corner, corner + 0.2 + torch.rand(n, 2, device=device)], 1)


device = "cuda" if torch.cuda.is_available() else "cpu"
counter = MatchCounter()
for image in range(3):
    counter.add(random_boxes(5, device), torch.rand(5, device=device), random_boxes(3, device))
print(counter.precision)
