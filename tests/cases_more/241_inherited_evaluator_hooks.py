from abc import ABC, abstractmethod

import torch
from torch import nn


class Evaluator(ABC):
    def reset(self):
        self.results = []

    @abstractmethod
    def process(self, inputs, outputs): ...

    def evaluate(self):
        return len(self.results)


class KeypointEvaluator(Evaluator):
    def __init__(self, thr):
        self.thr = thr

    def process(self, inputs, outputs):
        for inp, out in zip(inputs, outputs):
            kp = out["heat"].flatten(1)
            score, at = kp.max(1)
            visible = score > self.thr
            self.results.append({"id": inp["id"], "pts": at[visible].to("cpu").tolist(), "score": float(score.mean())})


class LossEvaluator(Evaluator):
    def process(self, inputs, outputs):
        self.results += [out["heat"].abs().mean().numpy(force=True) for out in outputs]


def inference_on(model, loader, evaluators, device):
    for e in evaluators:
        e.reset()
    with torch.no_grad():
        for inputs in loader:
            batch = torch.stack([i["image"] for i in inputs]).to(device)
            outputs = [{"heat": h} for h in model(batch)]
            for e in evaluators:
                e.process(inputs, outputs)
    return {type(e).__name__: e.evaluate() for e in evaluators}


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Conv2d(3, 4, 3, padding=1).to(device).eval()
    loader = [[{"id": 2 * b + i, "image": torch.randn(3, 6, 6)} for i in range(2)] for b in range(4)]
    print(inference_on(model, loader, [KeypointEvaluator(0.1), LossEvaluator()], device))
