// A notebook: what one cell knows of another, and what its lines cost once it was profiled.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { claim, PYTHON, scenario, until } from "./harness.mjs";

const SETUP = `%matplotlib inline
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(512, 512).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.01)`;

const TRAIN = `%%time
total = 0.0
for step in range(30):
    loss = model(torch.randn(256, 512, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()`;

let file;

function prepare(base) {
  mkdirSync(join(base, "project"));
  file = join(base, "project", "train.ipynb");
  const code = (source, id) => ({
    ...{ cell_type: "code", id, source, metadata: {} },
    ...{ outputs: [], execution_count: null },
  });
  const cells = [
    code(SETUP, "setup"),
    { cell_type: "markdown", id: "prose", source: "# Training", metadata: {} },
    code(TRAIN, "train"),
  ];
  const metadata = { language_info: { name: "python" } };
  writeFileSync(file, JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }));
  return join(base, "project");
}

await scenario(
  "notebooks",
  { prepare, settings: () => ({ "python.defaultInterpreterPath": PYTHON }) },
  async (editor) => {
    const { page } = editor;
    const before = readFileSync(file, "utf8");
    await editor.open("train.ipynb");
    const cells = page.locator(".notebookOverlay .cell-list-container .code-cell-row");
    const line = (text) => cells.locator(".view-line", { hasText: text }).first();
    await line("total += loss.item()").waitFor();
    await editor.squiggles().first().waitFor({ state: "attached" });
    assert.equal(await cells.nth(0).locator(".squiggly-warning").count(), 0);
    assert.equal(await cells.nth(1).locator(".squiggly-warning").count(), 1);
    await editor.shot("1-squiggle");
    claim("a squiggle in one cell is about what another one made");

    await line("total += loss.item()").click();
    const card = await editor.hover("waits for the GPU");
    await card.getByText("cell 3 line 4").waitFor();
    await editor.shot("2-hover");
    claim("the hover says why, and counts lines by cells");
    await page.keyboard.press("Escape");

    await editor.status("rooflint: ready").waitFor();
    await page.getByRole("button", { name: "Profile This File" }).first().click();
    await editor.notification("Profiling train.ipynb").waitFor();
    claim("the notebook's toolbar starts a profile");
    await editor.notification(/step [\d.,]+ (µs|ms|s)/).waitFor({ timeout: 300_000 });
    await editor.status(/step [\d.,]+ (µs|ms|s)/).waitFor();
    await editor.shot("3-profiled");
    claim("it ends with its result in a sentence");
    assert.equal(readFileSync(file, "utf8"), before);

    await line("loss.backward()").click();
    await page.keyboard.press("End");
    await line("loss = model(").click();
    await editor.hover("measured");
    await editor.shot("4-measured");
    claim("a line of a cell shows what it costs");
    await page.keyboard.press("Escape");

    await editor.command("Problems: Focus on Problems View");
    await editor
      .problem(/ on the CPU a step \([\d.]+ % of its time\)/)
      .first()
      .waitFor();
    await editor.shot("5-problems");
    claim("Problems lists the lines that cost most");

    await page.locator(".tab.active").click();
    await editor.close();
    const costly = editor.problem(/ on the CPU a step/).first();
    await until("the notebook's own lines are told no more", async () => !(await editor.problem("waits for").count()));
    await costly.waitFor();
    await editor.shot("6-closed");
    await costly.click();
    await costly.press("Enter");
    await page.locator(".tab[data-resource-name='train.ipynb'].active").waitFor();
    await cells.nth(1).locator(".view-line", { hasText: "loss = model(" }).waitFor();
    await editor.status("Cell 3 of 3").waitFor();
    await editor.shot("7-opened-from-problems");
    claim("from Problems, a notebook that is closed opens at the cell and line that cost most");
  },
);
