import torch


class Kalman:
    def __init__(self, n, m, device):
        self.F = torch.eye(n, device=device) * 0.98
        self.H = torch.randn(m, n, device=device)
        self.P = torch.eye(n, device=device)
        self.Q = 0.01 * torch.eye(n, device=device)
        self.R = 0.1 * torch.eye(m, device=device)
        self.x = torch.zeros(n, 1, device=device)

    def predict(self):
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def correct(self, z):
        s = self.H @ self.P @ self.H.T + self.R
        gain = self.P @ self.H.T @ torch.linalg.inv(s)
        self.x = self.x + gain @ (z - self.H @ self.x)
        self.P = self.P - gain @ self.H @ self.P
        return s

    def log_likelihood(self, z, s):
        chol = torch.linalg.cholesky(s)
        white = torch.linalg.solve_triangular(chol, z - self.H @ self.x, upper=False)
        return -0.5 * white.square().sum() - chol.diagonal().log().sum()


torch.manual_seed(0)
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
kf = Kalman(4, 2, dev)
total = torch.zeros((), device=dev)
for z in torch.randn(6, 2, 1, device=dev):
    kf.predict()
    s = kf.correct(z)
    total += kf.log_likelihood(z, s)
