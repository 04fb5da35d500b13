"""The server as an editor meets it: a process of its own, on stdin and stdout."""

from __future__ import annotations

import sys

import pytest_lsp
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

SERVER = ClientServerConfig(server_command=[sys.executable, "-m", "rooflint", "server"])

TRAIN = """\
import torch

model = torch.nn.Linear(8, 8).cuda()
total = 0.0
for batch in range(100):
    loss = model(torch.ones(8, 8, device="cuda")).sum()
    loss.backward()
    total += loss.item()
print(total)
"""


@pytest_lsp.fixture(config=SERVER)
async def client(lsp_client: LanguageClient, tmp_path):
    folder = lsp.WorkspaceFolder(tmp_path.as_uri(), "project")
    params = lsp.InitializeParams(client_capabilities("neovim"), workspace_folders=[folder])
    await lsp_client.initialize_session(params)
    yield
    await lsp_client.shutdown_session()
