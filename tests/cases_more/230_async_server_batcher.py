import asyncio

import torch
from torch import nn


class Batcher:
    def __init__(self, model, device, max_batch=4):
        self.model, self.device, self.max_batch = model, device, max_batch
        self.queue = asyncio.Queue()

    async def predict(self, features):
        fut = asyncio.get_running_loop().create_future()
        await self.queue.put((features, fut))
        return await fut

    async def run(self):
        while True:
            items = [await self.queue.get()]
            while len(items) < self.max_batch and not self.queue.empty():
                items.append(self.queue.get_nowait())
            x = torch.tensor([f for f, _ in items], device=self.device)
            with torch.inference_mode():
                probs = self.model(x).softmax(-1)
            conf, label = probs.max(-1)
            for (_, fut), c, k in zip(items, conf, label):
                fut.set_result({"label": k.item(), "confidence": round(c.item(), 3)})


async def main(n=12):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    b = Batcher(nn.Linear(3, 5).to(device).eval(), device)
    worker = asyncio.create_task(b.run())
    out = await asyncio.gather(*(b.predict([0.1 * i, 0.2, 0.3]) for i in range(n)))
    worker.cancel()
    return out


print(len(asyncio.run(main())))
