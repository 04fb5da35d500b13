import torch
import torch.nn.functional as F
from torch import nn


class Learner(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.vars = nn.ParameterList(
            [
                nn.Parameter(torch.randn(n_hidden, n_in) * 0.1),
                nn.Parameter(torch.zeros(n_hidden)),
                nn.Parameter(torch.randn(n_out, n_hidden) * 0.1),
                nn.Parameter(torch.zeros(n_out)),
            ]
        )

    def forward(self, x, vars=None):
        w1, b1, w2, b2 = self.vars if vars is None else vars
        return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)


class Meta(nn.Module):
    def __init__(self, net, update_lr=0.1, update_step=3, meta_lr=1e-3):
        super().__init__()
        self.net, self.update_lr, self.update_step = net, update_lr, update_step
        self.meta_optim = torch.optim.Adam(self.net.parameters(), lr=meta_lr)

    def forward(self, x_spt, y_spt, x_qry, y_qry):
        task_num, querysz = x_spt.size(0), x_qry.size(1)
        losses_q = [0 for _ in range(self.update_step + 1)]
        corrects = [0 for _ in range(self.update_step + 1)]
        for i in range(task_num):
            fast = list(self.net.parameters())
            for k in range(self.update_step):
                loss = F.cross_entropy(self.net(x_spt[i], fast), y_spt[i])
                grad = torch.autograd.grad(loss, fast, create_graph=True)
                fast = [p - self.update_lr * g for p, g in zip(fast, grad)]
                logits_q = self.net(x_qry[i], fast)
                losses_q[k + 1] = losses_q[k + 1] + F.cross_entropy(logits_q, y_qry[i])
                with torch.no_grad():
                    pred_q = F.softmax(logits_q, dim=1).argmax(dim=1)
                    correct = torch.eq(pred_q, y_qry[i]).sum().item()
                    corrects[k + 1] = corrects[k + 1] + correct
        loss_q = losses_q[-1] / task_num
        self.meta_optim.zero_grad()
        loss_q.backward()
        self.meta_optim.step()
        return [c / (querysz * task_num) for c in corrects]


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(222)
    maml = Meta(Learner(6, 12, 3)).to(device)
    for step in range(4):
        x_spt, x_qry = torch.randn(3, 5, 6), torch.randn(3, 8, 6)
        y_spt, y_qry = torch.randint(0, 3, (3, 5)), torch.randint(0, 3, (3, 8))
        x_spt, y_spt, x_qry, y_qry = x_spt.to(device), y_spt.to(device), x_qry.to(device), y_qry.to(device)
        accs = maml(x_spt, y_spt, x_qry, y_qry)
        if step % 2 == 0:
            print("step:", step, len(accs))


main()
