import torch
import torch.autograd as autograd
from torch import nn

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, img):
        return self.model(img.view(img.size(0), -1))


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = torch.rand(real_samples.size(0), 1).to(device)
    interpolates = (alpha * real_samples + (1 - alpha) * fake_samples).requires_grad_(True)
    d_interpolates = D(interpolates)
    fake = torch.ones(real_samples.shape[0], 1, device=device)
    gradients = autograd.grad(d_interpolates, interpolates, fake, create_graph=True, retain_graph=True)[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


def main(n_critic=2):
    torch.manual_seed(0)
    D, G = Critic().to(device), nn.Linear(4, 6).to(device)
    opt_d, opt_g = torch.optim.Adam(D.parameters()), torch.optim.Adam(G.parameters())
    out = []
    for i in range(6):
        real = torch.randn(8, 6).to(device)
        opt_d.zero_grad()
        fake = G(torch.randn(8, 4, device=device)).detach()
        gp = compute_gradient_penalty(D, real, fake)
        d_loss = D(fake).mean() - D(real).mean() + 10 * gp
        d_loss.backward()
        opt_d.step()
        if i % n_critic == 0:
            opt_g.zero_grad()
            g_loss = -D(G(torch.randn(8, 4, device=device))).mean()
            g_loss.backward()
            opt_g.step()
        out.append("[D loss: %f] [G loss: %f] [gp %s]" % (d_loss.item(), g_loss.item(), gp.item()))
    return len(out)


print(main())
