from collections import deque

import numpy as np
import torch
from torch import nn


class Track:
    def __init__(self, pos, score, track_id, features):
        self.id, self.pos, self.score = track_id, pos, score
        self.features = deque([features], maxlen=4)
        self.last_v = torch.zeros(2)

    def mean_feature(self):
        return torch.stack(list(self.features)).mean(0)


class Tracker:
    def __init__(self, detector, reid, thresh=0.4):
        self.detector, self.reid, self.thresh = detector, reid, thresh
        self.tracks, self.results, self.num = [], {}, 0

    def regress(self):
        pos = torch.stack([t.pos for t in self.tracks])
        boxes, scores = self.detector(pos)
        for i in range(len(self.tracks) - 1, -1, -1):
            t = self.tracks[i]
            t.score = scores[i]
            if scores[i] <= 0.05:
                self.tracks.remove(t)
            else:
                t.pos = boxes[i]

    def match(self, pos, feats):
        cost = torch.cdist(torch.stack([t.mean_feature() for t in self.tracks]), feats)
        cost = cost.cpu().numpy()
        taken = []
        for row in np.argsort(cost.min(1)):
            col = int(cost[row].argmin())
            if col not in taken and cost[row, col] < 2.0:
                self.tracks[row].pos = pos[col]
                taken.append(col)
        return torch.tensor([i for i in range(len(pos)) if i not in taken], dtype=torch.long).to(pos.device)

    def step(self, frame, frame_id):
        boxes, scores = self.detector(frame)
        inds = torch.gt(scores, self.thresh).nonzero(as_tuple=False).view(-1)
        boxes, scores = boxes[inds], scores[inds]
        feats = self.reid(boxes)
        new = torch.arange(len(boxes), device=boxes.device)
        if self.tracks:
            self.regress()
        if self.tracks and boxes.nelement() > 0:
            new = self.match(boxes, feats)
        for i in new:
            self.tracks.append(Track(boxes[i], scores[i], self.num, feats[i]))
            self.num += 1
        for t in self.tracks:
            self.results.setdefault(t.id, {})[frame_id] = np.concatenate([t.pos.cpu().numpy(), np.array([t.score.cpu()])])


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.box, self.cls = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.box(x), self.cls(x).squeeze(-1).sigmoid()


if __name__ == "__main__":
    torch.manual_seed(0)
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tracker = Tracker(Detector().to(dev).eval(), nn.Linear(4, 8).to(dev).eval())
    with torch.no_grad():
        for frame_id in range(5):
            tracker.step(torch.randn(6, 4, device=dev), frame_id)
    print(len(tracker.results) > 0)
