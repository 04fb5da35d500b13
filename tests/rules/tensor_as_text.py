import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

from tqdm import tqdm

bar = tqdm(range(100))
for step in bar:
    loss = model(torch.randn(4, 8, device=device)).mean()
    loss.backward()
    optimizer.step()
    print(loss)  # want `loss` waits for the GPU
    text = f"loss {loss:.3f} of step {step}"  # want `loss` waits
    text = "loss %.3f" % loss  # want `loss` waits
    text = "loss {:.3f}".format(loss)  # want `loss` waits
    text = str(loss)  # want `str(loss)` waits
    bar.set_postfix(loss=loss.detach())  # want `bar.set_postfix(loss=loss.detach())` waits
    print(loss.shape, f"{step}")  # fine: the host knows
    if step % 50 == 0:
        print(loss)  # want `loss` on one step in


import logging
import mlflow
import wandb
from loguru import logger as talker
from rich.console import Console
from torch.utils.tensorboard import SummaryWriter

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("example")
writer = SummaryWriter()
run = wandb.init()
console = Console()
for step in bar:
    loss = model(torch.randn(4, 8, device=device)).mean()
    loss.backward()
    optimizer.step()
    log.info("loss %s", loss)  # want `log.info("loss %s", loss)` it writes the value as text
    log.debug("loss %s", loss)  # fine: nobody sees it
    log.log(logging.WARNING, "loss %s", loss)  # want `log.log(logging.WARNING, "loss %s", loss)` it writes the value
    bar.set_description(f"loss {loss:.3f}")  # want `loss` waits
    writer.add_scalar("loss", loss, step)  # want `writer.add_scalar("loss", loss, step)` it copies the value to the host
    wandb.log({"loss": loss})  # want `wandb.log({"loss": loss})` it reads the value on the host
    run.log({"loss": loss.detach()})  # want `run.log({"loss": loss.detach()})` it reads the value on the host
    mlflow.log_metric("loss", loss, step)  # want `mlflow.log_metric("loss", loss, step)` it reads the value
    talker.info("loss {}", loss)  # want `talker.info("loss {}", loss)` it reads the value
    console.print(loss)  # want `console.print(loss)` it reads the value
    if step % 50 == 0:
        wandb.log({"loss": loss})  # want `wandb.log({"loss": loss})` on one step in
