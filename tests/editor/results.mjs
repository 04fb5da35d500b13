// A project that was profiled on an H200: what someone sees who opens it, edits it, and asks.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { claim, PYTHON, ROOT, scenario, until } from "./harness.mjs";

const RECORDINGS = join(ROOT, "tests", "profiles", "recordings");

let base;
let project;

function prepare(folder) {
  base = folder;
  project = join(base, "project");
  mkdirSync(project);
  cpSync(join(ROOT, "examples", "train.py"), join(project, "train.py"));
  recording("train_h200", join(project, ".rooflint", "recordings", "before"));
  return project;
}

/** A recording as the recorder left it. */
function recording(name, target) {
  cpSync(join(RECORDINGS, name), target, { recursive: true });
  const { status } = spawnSync("xz", ["-d", join(target, "counters.ncu-rep.xz")]);
  assert.equal(status, 0);
}

/** What decorations write behind a line. */
function drawnAfter(line) {
  return line.evaluate((node) =>
    [...node.querySelectorAll("span")].map((span) => getComputedStyle(span, "::after").content).join(" "),
  );
}

/** The mended example as a later run of the same script, somewhere else. */
function elsewhere() {
  const target = join(base, "cluster", "later");
  recording("train_fixed_h200", target);
  const meta = readFileSync(join(target, "meta.json"), "utf8").replaceAll("train_fixed.py", "train.py");
  writeFileSync(join(target, "meta.json"), meta);
  const trace = join(target, "trace.json");
  spawnSync("sh", ["-c", `zcat ${trace}.gz | sed s/train_fixed.py/train.py/g | gzip > ${trace}.new`]);
  renameSync(`${trace}.new`, `${trace}.gz`);
  return target;
}

await scenario(
  "results",
  { prepare, settings: () => ({ "python.defaultInterpreterPath": PYTHON, "editor.minimap.enabled": false }) },
  async (editor) => {
    const { page } = editor;
    const file = join(project, "train.py");
    const source = readFileSync(file, "utf8").split("\n");
    const lineOf = (text) => source.findIndex((line) => line.includes(text)) + 1;
    const lens = (text) => page.locator(".codelens-decoration", { hasText: text }).first();
    const written = (text) => page.locator(".view-line", { hasText: text }).first();

    await editor.open("train.py");
    await editor.goToLine(lineOf("for step, batch"));
    await lens("step 17.2 ms · GPU busy 93 % · 4.67 syncs").waitFor();
    await lens("profile again").waitFor();
    claim("above the loop of the steps stands what a step costs, and the way to profile again");
    await editor.status("step 17.2 ms · GPU 93 %").waitFor();
    await editor.shot("1-loop");

    const product = lineOf("h = self.up(self.norm2(x))");
    await editor.goToLine(product);
    await lens("GPU 7.03 ms a step (44 %) on its own lines").waitFor();
    await written(/self\.norm2\(x\)\).?GPU.2\.94.ms.\(18.%\)/).waitFor();
    claim("behind a line stands what it costs, above its function what that does");
    await editor.shot("2-function");

    const quiet = lineOf("optimizer.zero_grad()");
    await editor.goToLine(quiet, source[quiet - 1].indexOf("zero") + 1);
    const card = await editor.hover("next to nothing");
    assert.equal(await card.locator("table, a").count(), 0);
    await editor.shot("2-quiet");
    await page.keyboard.press("Escape");
    claim("a line with nothing to say has a card of one line");

    const mixed = lineOf("loss = F.cross_entropy(");
    await editor.goToLine(mixed, source[mixed - 1].indexOf("loss") + 1);
    await editor.clickInHover("latency-bound", "a:has-text('Every event in Perfetto')");
    await editor.notification("recordings/before/trace.json.gz").waitFor();
    await editor.shot("2-trace");
    await editor.command("Notifications: Clear All Notifications");
    await editor.goToLine(mixed, source[mixed - 1].indexOf("loss") + 1);
    await editor.clickInHover("latency-bound", "a:has-text('What is latency-bound?')");
    const preview = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
    await preview.locator("h1", { hasText: "Verdicts" }).waitFor();
    claim("below the numbers, links lead to the trace and to what the verdict means");
    await editor.close();

    await editor.goToLine(product);
    await editor.command("Rooflint: Explain This Line");
    await page.locator(".monaco-hover:not(.hidden)", { hasText: "compute-bound" }).first().waitFor();
    await editor.shot("3-explained");
    await page.keyboard.press("Escape");
    claim("a command explains the line at the cursor");

    await editor.goToLine(product, 1);
    await page.keyboard.press("End");
    await page.keyboard.type(" * 1");
    const stale = "GPU 2.94 ms (18 %) · measured before this change";
    await until("the line is greyed", async () => (await drawnAfter(written("norm2(x)) * 1"))).includes(stale));
    await editor.goToLine(1, 1);
    await page.keyboard.type("# a new first line\n");
    await editor.goToLine(product + 1);
    await until("it stays greyed", async () => (await drawnAfter(written("norm2(x)) * 1"))).includes(stale));
    await editor.shot("4-stale");
    claim("a line that was changed is greyed and says that it was measured before; numbers move with their lines");
    await editor.command("File: Revert File");

    const read = lineOf("total += loss.item()");
    await editor.goToLine(read, source[read - 1].indexOf("total") + 1);
    await editor.hover("waits for the GPU on every step");
    await editor.shot("4-beside");
    await page.keyboard.press("Escape");
    claim("the card says what was found, also beside what is underlined");
    await editor.goToLine(read, source[read - 1].indexOf("loss") + 1);
    await editor.command("Rooflint: Show Rule");
    await preview.locator("h2#item-in-loop").waitFor();
    await editor.shot("5-rule");
    claim("the page of the rule opens, at the rule");
    await editor.close();

    await editor.goToLine(read, source[read - 1].indexOf("loss") + 1);
    await editor.clickInHover("item-in-loop", "a.code-link");
    await preview.locator("h2#item-in-loop").waitFor();
    claim("so does the link of its name, in the hover");
    await editor.close();

    await editor.goToLine(product);
    await editor.command("Problems: Focus on Problems View");
    await editor.problem("compute-bound").locator("a", { hasText: "compute-bound" }).first().click();
    await preview.locator("h1", { hasText: "Verdicts" }).waitFor();
    await editor.shot("5-verdict");
    claim("the link of a verdict's name, in Problems, opens its page");
    await editor.close();

    await editor.goToLine(read, source[read - 1].indexOf("loss") + 1);
    await editor.command("Rooflint: Ignore Rule Here");
    await written("# rooflint: ignore[item-in-loop]").waitFor();
    claim("a command silences the rule on the line");
    await page.keyboard.press("Control+z");

    cpSync(join(ROOT, "examples", "train_fixed.py"), file);
    const later = elsewhere();
    const row = (text) => page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first();
    await editor.pressUntil("F1", editor.quickInput());
    await editor.quickInput().fill(">Rooflint: Import Recording…");
    await row("Import Recording").waitFor();
    await page.keyboard.press("Enter");
    await row("A recording folder").waitFor();
    await page.keyboard.press("Enter");
    const button = page.locator(".quick-input-widget .monaco-button", { hasText: "Import" });
    await button.waitFor();
    let kept = 0;
    await until("the dialog keeps what is typed", async () => {
      // A little after it has appeared, it writes the folder that it opens in.
      kept = (await editor.quickInput().inputValue()) === later ? kept + 1 : 0;
      if (kept === 0) {
        await editor.quickInput().fill(later);
      }
      return kept > 10;
    });
    await until("the dialog takes the folder", async () => {
      // It is deaf while it lists what a folder holds.
      await button.click({ timeout: 1000 }).catch(() => {});
      return !(await button.isVisible());
    });
    await editor.notification("Its file is here. step 12.3 ms").waitFor();
    await editor.goToLine(
      readFileSync(file, "utf8")
        .split("\n")
        .findIndex((line) => line.includes("for batch in")) + 1,
    );
    await lens(/step 17\.2 → 12\.3 ms \(−28 %/).waitFor();
    await editor.shot("6-compared");
    claim("a recording made elsewhere is shown, and compared with the one before");
    await until("it is kept", () => readdirSync(join(project, ".rooflint", "recordings")).length === 2);

    await editor.command("Rooflint: Compare With Previous");
    await page.locator(".tab.active", { hasText: "train.py: before and now" }).waitFor();
    await written("compute-bound before, overhead-bound now").waitFor();
    await editor.shot("7-compared");
    await page.keyboard.type("x");
    await page.locator(".monaco-editor-overlaymessage", { hasText: "read-only" }).waitFor();
    await page.keyboard.press("ArrowDown"); // The message lies over the tabs until the cursor moves.
    await page.locator(".monaco-editor-overlaymessage").waitFor({ state: "detached" });
    claim("the differences are listed line by line in a document that cannot be edited");
    await page.keyboard.press("Control+Home");
    const now = readFileSync(file, "utf8").split("\n");
    const head = now.findIndex((line) => line.includes("return self.head(x)")) + 1;
    await page.locator(".detected-link", { hasText: `train.py:${head}` }).click({ modifiers: ["Control"] });
    await editor.status(`Ln ${head}, Col 1`).waitFor();
    claim("a line of the comparison leads to where it is now");

    await editor.command("Rooflint: Clear Results");
    await lens("step 17.2").waitFor({ state: "detached" });
    claim("results that were cleared are gone");
  },
);
