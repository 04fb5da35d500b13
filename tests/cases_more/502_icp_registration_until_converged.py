import torch


def nearest(src, dst):
    d = torch.cdist(src, dst)
    dist, idx = d.min(1)
    return dist, idx


def best_transform(a, b):
    ca, cb = a.mean(0), b.mean(0)
    h = (a - ca).T @ (b - cb)
    u, s, vt = torch.linalg.svd(h)
    r = vt.T @ u.T
    if torch.det(r) < 0:
        vt = torch.cat([vt[:-1], -vt[-1:]])
        r = vt.T @ u.T
    return r, cb - r @ ca


class ICP:
    def __init__(self, iters=6, tol=1e-6, trim=0.9):
        self.iters, self.tol, self.trim = iters, tol, trim

    def __call__(self, src, dst):
        previous = float("inf")
        for i in range(self.iters):
            dist, idx = nearest(src, dst)
            keep = dist <= torch.quantile(dist, self.trim)
            r, t = best_transform(src[keep], dst[idx[keep]])
            src = src @ r.T + t
            error = dist.mean().item()
            if abs(previous - error) < self.tol:
                break
            previous = error
        return src, i + 1


def main(scans=3):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    icp, used = ICP(), 0
    target = torch.randn(60, 3, device=device)
    for _ in range(scans):
        angle = torch.rand((), device=device) * 0.2
        c, s, z, o = angle.cos(), angle.sin(), angle * 0, angle * 0 + 1
        rot = torch.stack([c, -s, z, s, c, z, z, z, o]).view(3, 3)
        _, n = icp(target @ rot.T, target)
        used += n
    return used


print(main() > 0)
