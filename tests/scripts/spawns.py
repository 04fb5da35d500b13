"""Spawns processes, and lets them do what the arguments say, while this one only waits."""

import multiprocessing
import os
import sys

import torch


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.nn.Identity()(torch.tensor(index * index))


def work(what, answers):
    number = int(multiprocessing.current_process().name.rpartition("-")[2])
    # Where they train, the second one is the first rank.
    os.environ["RANK"] = str(2 - number if what == "trains" else number - 1)
    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(60):
        loss = layer(torch.ones(4)).sum()
        if what == "trains":
            loss.backward()
            optimizer.step()
    answers.put((os.environ["RANK"], sys.argv, __name__, sys.path[0] == os.getcwd()))
    sys.exit(5)


if __name__ == "__main__":
    method, what = sys.argv[1:]
    context = multiprocessing.get_context(method)
    if what == "loads":
        loader = torch.utils.data.DataLoader(
            Squares(), num_workers=1, multiprocessing_context=context
        )
        print(sorted(int(batch) for batch in loader))
        sys.exit(3)
    answers = context.Queue()
    processes = [context.Process(target=work, args=(what, answers)) for _ in range(2)]
    for process in processes:
        process.start()
    for answer in sorted(answers.get(timeout=100) for process in processes):
        print(*answer)
    for process in processes:
        process.join()
        print(process.exitcode)
    sys.exit(3)
