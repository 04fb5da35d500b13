// A script that never ends, and the Cancel button.

import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { claim, HERE, PYTHON, scenario, until } from "./harness.mjs";

let processFile;

function prepare(base) {
  const project = join(base, "project");
  mkdirSync(project);
  cpSync(join(HERE, "workspace", "endless.py"), join(project, "endless.py"));
  processFile = join(project, "process.txt");
  return project;
}

await scenario("cancel", { prepare, settings: () => ({ "python.defaultInterpreterPath": PYTHON }) }, async (editor) => {
  await editor.open("endless.py");
  await editor.command("Rooflint: Profile This File");
  await until("the script is under way", () => existsSync(processFile), 120);
  await editor.command("Rooflint: Show Output");
  await editor.page.locator(".output-view .view-line", { hasText: "process" }).first().waitFor();
  await editor.shot("1-running");
  claim("what the script prints is shown while it runs");

  await editor.notification("Profiling endless.py").locator("a", { hasText: "Cancel" }).click();
  await editor.notification(/Cancelled; of what was recorded: step [\d.]+ (µs|ms|s)/).waitFor();
  await editor.shot("2-cancelled");
  claim("what was recorded until then is kept and told");
  await until("the script has ended", () => !isRunning(Number(readFileSync(processFile, "utf8"))));
  claim("the script has ended");
});

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
