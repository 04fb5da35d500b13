// The roofline beside the editor: opened, clicked, restyled, and drawn anew after a profile.

import assert from "node:assert/strict";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { claim, PYTHON, ROOT, scenario, until } from "./harness.mjs";

const RECORDING = join(ROOT, "tests", "profiles", "recordings", "train_h200");
let project;

function prepare(base) {
  project = join(base, "project");
  // Recorded elsewhere, in /home/user/project: the file is known by its content.
  cpSync(RECORDING, join(project, ".rooflint", "recordings", "20261129-160920-train"), { recursive: true });
  const [source] = readdirSync(join(RECORDING, "sources"));
  cpSync(join(RECORDING, "sources", source), join(project, "train.py"));
  return project;
}

await scenario(
  "roofline",
  {
    prepare,
    settings: () => ({ "python.defaultInterpreterPath": PYTHON, "workbench.colorTheme": "Default Dark Modern" }),
  },
  async (editor) => {
    const { page } = editor;
    await editor.open("train.py");
    await editor.status(/step [\d.,]+ ms/).waitFor();
    await editor
      .status(/step [\d.,]+ ms/)
      .locator("a")
      .click(); // The same as Rooflint: Show Roofline.
    const frame = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
    await frame.locator("h1", { hasText: "train.py" }).waitFor();
    await frame.locator(".roofline .uplot canvas").waitFor();
    assert.equal(await frame.locator("html").getAttribute("data-theme"), "dark");
    assert.equal(await frame.locator("html").getAttribute("data-host"), "editor");
    // The page keeps the focus, so the status bar names no line.
    const at = (number) => page.locator(".active-line-number", { hasText: new RegExp(`^${number}$`) }).waitFor();
    await editor.shot("1-shown");
    claim("the page opens beside the editor, in its colours");

    await frame.locator("tr.line", { hasText: "return x + self.down(h)" }).click();
    await at(58);
    claim("a click on a row goes to the line");

    await frame.getByRole("button", { name: "kernels" }).click();
    const plot = frame.locator(".roofline .plot");
    await plot.focus();
    await page.keyboard.press("ArrowRight");
    const told = await frame.locator(".roofline [role=status]").textContent();
    const line = /on train\.py:(\d+)/.exec(told)[1];
    await page.keyboard.press("Enter");
    await at(line);
    await editor.shot("2-point");
    claim("Enter on a point goes to its line");

    await editor.goToLine(73, 17);
    const card = await editor.hover("Show in roofline");
    await card.locator("a", { hasText: "Show in roofline" }).click();
    await frame.locator("tr.line.chosen", { hasText: "return self.head(x)" }).waitFor();
    await frame.locator("tr.details").waitFor();
    await editor.shot("2-from-hover");
    claim("the hover card links to its line on the page");
    const verdict = frame.locator("tr.line.chosen td.verdict");
    const [cell, view] = [await verdict.boundingBox(), await page.locator("iframe.webview.ready").boundingBox()];
    assert.ok(cell.x + cell.width <= view.x + view.width, "the verdict is in sight");
    claim("beside an editor the verdict of a line is in sight");

    // Two lines more at the top: what was measured moves down with its text.
    await editor.goToLine(1);
    await page.keyboard.type("#\n#\n");
    await frame.locator("tr.line", { hasText: "return x + self.down(h)" }).click();
    await at(60);
    claim("lines are found where they are after an edit");
    await page.keyboard.press("Control+1");
    await editor.command("File: Revert File");

    await editor.command("Preferences: Toggle between Light/Dark Themes");
    await until("the page is light", async () => (await frame.locator("html").getAttribute("data-theme")) === "light");
    assert.equal(await frame.locator("[aria-pressed=true]").textContent(), "kernels");
    await editor.shot("3-light");
    claim("it follows the editor's theme");

    // As a profile in a terminal leaves it.
    const target = join(project, ".rooflint", "recordings", "20261129-170000-train");
    cpSync(RECORDING, target, { recursive: true, filter: (path) => !path.endsWith("meta.json") });
    const meta = JSON.parse(readFileSync(join(RECORDING, "meta.json"), "utf8"));
    writeFileSync(join(target, "meta.json"), JSON.stringify({ ...meta, made_at: "2026-11-29T17:00:00+00:00" }));
    await frame.locator(".title .where", { hasText: "2026-11-29 17:00" }).waitFor();
    assert.equal(await frame.locator("[aria-pressed=true]").textContent(), "kernels");
    claim("it is drawn anew when something was recorded, and keeps its view");

    await page.reload();
    await frame.locator(".title .where", { hasText: "2026-11-29 17:00" }).waitFor();
    await editor.shot("4-opened-again");
    claim("the window opened again still shows it");
  },
);
