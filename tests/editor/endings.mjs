// Ways a run can end that are not the good one: cancelled, with an error, without torch.

import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { claim, HERE, PYTHON, scenario, until } from "./harness.mjs";

const FAILS = `import torch

weight = torch.randn(64, 64)
for step in range(60):
    weight = torch.tanh(weight @ weight)
    if step == 50:
        raise ValueError("bad batch")
`;
let processFile;

function prepare(base) {
  const project = join(base, "project");
  mkdirSync(project);
  cpSync(join(HERE, "workspace", "endless.py"), join(project, "endless.py"));
  writeFileSync(join(project, "fails.py"), FAILS);
  writeFileSync(join(project, "plain.py"), "print('no torch here')\n");
  processFile = join(project, "process.txt");
  return project;
}

await scenario(
  "endings",
  { prepare, settings: () => ({ "python.defaultInterpreterPath": PYTHON }) },
  async (editor) => {
    await editor.open("endless.py");
    await editor.command("Rooflint: Profile This File");
    await until("the script is under way", () => existsSync(processFile), 120);
    await editor.command("Rooflint: Show Output");
    await editor.output("process").waitFor();
    await editor.shot("1-running");
    claim("what the script prints is shown while it runs");

    await editor.notification("Profiling endless.py").locator("a", { hasText: "Cancel" }).click();
    await editor.notification(/Cancelled; until then: step [\d.]+ (µs|ms|s)/).waitFor();
    await editor.shot("2-cancelled");
    claim("after a cancel, what was recorded until then is kept and told");
    await until("the script has ended", () => !isRunning(Number(readFileSync(processFile, "utf8"))));
    claim("the script has ended");

    await editor.open("fails.py");
    await editor.command("Rooflint: Profile This File");
    await editor.notification(/fails.py ended with exit code 1; until then: step [\d.]+ (µs|ms|s)/).waitFor();
    await editor.output("ValueError: bad batch").waitFor();
    await editor.shot("3-failed");
    claim("that a script failed is told before what was measured until then");

    await editor.open("plain.py");
    await editor.command("Rooflint: Profile This File");
    await editor.notification(/torch/).waitFor();
    await editor.shot("4-nothing");
    claim("of a script without torch, a sentence tells");
  },
);

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
