import torch
import torch.nn.functional as F
from torch import nn


class AdaptiveKLController:
    def __init__(self, init=0.2, target=6.0, horizon=100):
        self.value, self.target, self.horizon = init, target, horizon

    def update(self, current, n_steps):
        error = max(min(current / self.target - 1, 0.2), -0.2)
        self.value *= 1 + error * n_steps / self.horizon


class LM(nn.Module):
    def __init__(self, vocab=20, dim=12):
        super().__init__()
        self.emb, self.head = nn.Embedding(vocab, dim), nn.Linear(dim, vocab)

    def logps(self, ids):
        logits = self.head(self.emb(ids[:, :-1]))
        return logits.log_softmax(-1).gather(2, ids[:, 1:, None]).squeeze(2)


def masked_mean(x, mask):
    return (x * mask).sum() / mask.sum()


class DPOTrainer:
    def __init__(self, policy, ref, beta=0.1, lr=1e-3):
        self.policy, self.ref, self.beta = policy, ref, beta
        self.opt = torch.optim.AdamW(policy.parameters(), lr=lr)
        self.kl = AdaptiveKLController()

    def step(self, chosen, rejected, mask):
        pi_c, pi_r = self.policy.logps(chosen), self.policy.logps(rejected)
        with torch.no_grad():
            ref_c, ref_r = self.ref.logps(chosen), self.ref.logps(rejected)
        logits = ((pi_c - ref_c) * mask).sum(1) - ((pi_r - ref_r) * mask).sum(1)
        loss = -F.logsigmoid(self.beta * logits).mean()
        kl = masked_mean(pi_c.detach() - ref_c, mask)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.kl.update(kl.item(), len(chosen))
        stats = {
            "loss": loss.detach().cpu().numpy(),
            "accuracy": (logits > 0).float().mean().cpu().numpy(),
            "kl_coef": self.kl.value,
        }
        return stats


def main(steps=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    policy, ref = LM().to(device), LM().to(device).requires_grad_(False)
    ref.load_state_dict(policy.state_dict())
    trainer, log = DPOTrainer(policy, ref), []
    for _ in range(steps):
        chosen, rejected = torch.randint(0, 20, (2, 4, 7), device=device)
        log.append(trainer.step(chosen, rejected, torch.ones(4, 6, device=device)))
    return len(log)


print(main())
