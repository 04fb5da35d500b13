import torch


class PagedCache:
    def __init__(self, blocks, block_size, dim, device):
        self.block_size, self.device = block_size, device
        self.data = torch.zeros(blocks, block_size, dim, device=device)
        self.free = torch.ones(blocks, dtype=torch.bool, device=device)
        self.tables, self.lengths = {}, {}

    def allocate(self, seq):
        candidates = self.free.nonzero()
        if candidates.shape[0] == 0:
            raise RuntimeError("out of blocks")
        block = candidates[0, 0]
        self.free[block] = False
        self.tables.setdefault(seq, []).append(int(block))

    def append(self, seq, kv):
        n = self.lengths.get(seq, 0)
        if n % self.block_size == 0:
            self.allocate(seq)
        self.data[self.tables[seq][-1], n % self.block_size] = kv
        self.lengths[seq] = n + 1

    def gather(self, seq):
        table = torch.tensor(self.tables[seq], device=self.device)
        return self.data[table].flatten(0, 1)[: self.lengths[seq]]

    def release(self, seq):
        self.free[self.tables.pop(seq)] = True
        del self.lengths[seq]


def main(steps=10):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    cache = PagedCache(16, 2, 8, device)
    for step in range(steps):
        for seq in range(3):
            cache.append(seq, torch.randn(8, device=device))
            q = torch.randn(8, device=device)
            k = cache.gather(seq)
            att = (k @ q).softmax(0) @ k
    for seq in range(3):
        cache.release(seq)
    return att.shape


print(main())
