from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class TrainingArguments:
    lr: float = 1e-3
    max_steps: int = 8
    logging_steps: int = 4
    device: torch.device = field(default_factory=lambda: torch.device("cuda" if torch.cuda.is_available() else "cpu"))


class TrainerCallback:
    def on_log(self, logs): ...
    def on_step_end(self, state): ...


class PrintCallback(TrainerCallback):
    def on_log(self, logs):
        print(sorted(logs))


class Trainer:
    def __init__(self, model, args, data, callbacks=None):
        self.args = args
        self.model = model.to(args.device)
        self.data, self.callbacks = data, callbacks or []
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
        self.tr_loss, self.step = 0.0, 0

    def _prepare_inputs(self, inputs):
        return {k: v.to(self.args.device) for k, v in inputs.items()}

    def compute_loss(self, inputs):
        logits = self.model(inputs["input_ids"].float())
        return nn.functional.cross_entropy(logits, inputs["labels"]), logits

    def training_step(self, inputs):
        self.model.train()
        inputs = self._prepare_inputs(inputs)
        loss, _ = self.compute_loss(inputs)
        loss.backward()
        return loss.detach()

    def _maybe_log(self):
        if self.step % self.args.logging_steps == 0:
            logs = {"loss": self.tr_loss / self.step, "step": self.step}
            for cb in self.callbacks:
                cb.on_log(logs)

    def train(self):
        while self.step < self.args.max_steps:
            for inputs in self.data:
                self.tr_loss += self.training_step(inputs).item()
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.step += 1
                self._maybe_log()
        return self.predict()

    @torch.no_grad()
    def predict(self):
        preds, labels = [], []
        for inputs in self.data:
            inputs = self._prepare_inputs(inputs)
            _, logits = self.compute_loss(inputs)
            preds.extend(logits.argmax(-1).cpu().tolist())
            labels.append(inputs["labels"].to("cpu"))
        return sum(p == l for p, l in zip(preds, torch.cat(labels).tolist()))


torch.manual_seed(0)
batches = [{"input_ids": torch.randint(0, 5, (4, 6)), "labels": torch.randint(0, 3, (4,))} for _ in range(4)]
print(Trainer(nn.Linear(6, 3), TrainingArguments(), batches, [PrintCallback()]).train() >= 0)
