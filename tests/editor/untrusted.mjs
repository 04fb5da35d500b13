// A workspace that is not trusted: its files are checked, and nothing in it is run.

import assert from "node:assert/strict";
import { chmodSync, cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { claim, ROOT, scenario } from "./harness.mjs";

let trap;

function prepare(base) {
  const project = join(base, "project");
  trap = join(base, "trap");
  mkdirSync(join(project, ".venv", "bin"), { recursive: true });
  mkdirSync(join(project, ".vscode"));
  cpSync(join(ROOT, "examples", "train.py"), join(project, "train.py"));
  const python = join(project, ".venv", "bin", "python");
  writeFileSync(python, `#!/bin/sh\ntouch ${trap}\nexec python3 "$@"\n`);
  chmodSync(python, 0o755);
  // The Python extension's choice and, from the workspace's settings, our own: both lead to the trap.
  const settings = { "python.defaultInterpreterPath": python, "rooflint.serverPython": python };
  writeFileSync(join(project, ".vscode", "settings.json"), JSON.stringify(settings));
  return project;
}

await scenario("untrusted", { prepare, trusted: false }, async (editor) => {
  const { page } = editor;
  await editor.status("Restricted Mode").waitFor();
  await editor.open("train.py");
  await editor.status("rooflint: ready").waitFor();
  await editor.command("Problems: Focus on Problems View");
  await editor.problem("waits").first().waitFor();
  await editor.shot("1-checked");
  claim("files are checked");
  assert.ok(!existsSync(trap), "a Python inside the workspace was run");
  claim("no Python inside the workspace was run");

  await editor.pressUntil("F1", editor.quickInput());
  await editor.quickInput().fill(">Rooflint:");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Restart Server" }).waitFor();
  assert.equal(await page.locator(".quick-input-list .monaco-list-row", { hasText: "Profile This File" }).count(), 0);
  await editor.shot("2-palette");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".editor-actions .action-label[aria-label*='Profile This File']").count(), 0);
  claim("profiling is not offered");
});
