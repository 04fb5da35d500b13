// How a file is run: arguments that are known of it, chosen, typed and remembered; and not while it is debugged.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { claim, PYTHON, scenario } from "./harness.mjs";

const SCRIPT = 'import sys\n\nprint("given", sys.argv[1:])\n';
const LAUNCH = {
  name: "Two epochs",
  type: "debugpy",
  request: "launch",
  program: "${workspaceFolder}/train.py",
  args: ["--epochs", "2"],
};

function prepare(base) {
  const project = join(base, "project");
  mkdirSync(join(project, ".vscode"), { recursive: true });
  writeFileSync(join(project, "train.py"), SCRIPT);
  writeFileSync(join(project, "other.py"), SCRIPT);
  writeFileSync(join(project, "pyproject.toml"), "[tool.rooflint]\n\n");
  writeFileSync(join(project, ".vscode", "launch.json"), JSON.stringify({ configurations: [LAUNCH] }));
  return project;
}

await scenario(
  "arguments",
  { prepare, settings: () => ({ "python.defaultInterpreterPath": PYTHON }) },
  async (editor) => {
    const { page } = editor;
    const row = (text) => page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first();
    /** The output of a run without torch is short; the panel is emptied so that the next one is seen. */
    const printed = async (text) => {
      await editor.output(text).waitFor();
      await editor.command("View: Clear Output");
      await editor.output(text).waitFor({ state: "detached" });
    };

    await editor.open("train.py");
    await editor.status("rooflint: ready").waitFor();
    await editor.command("Rooflint: Show Output");
    await editor.command("Rooflint: Profile With Arguments…");
    await row("--epochs 2").waitFor();
    await row("launch.json: Two epochs").waitFor();
    await editor.shot("1-offered");
    await page.keyboard.press("Enter");
    await printed("given ['--epochs', '2']");
    claim("the arguments of a launch configuration of the file are offered");

    await editor.command("Rooflint: Profile With Arguments…");
    await row("Type arguments").click();
    await page.locator(".quick-input-widget .monaco-inputbox input").fill('--name "two words"');
    await editor.shot("2-typed");
    await page.keyboard.press("Enter");
    await printed("given ['--name', 'two words']");
    claim("arguments are typed as in a terminal");

    await editor.command("Rooflint: Profile This File");
    await row("last time").waitFor();
    await editor.shot("3-remembered");
    await page.keyboard.press("Enter");
    await printed("given ['--name', 'two words']");
    claim("what was typed last is offered first");

    await editor.open("other.py");
    await editor.command("Rooflint: Profile This File");
    await row("No arguments").waitFor();
    await editor.shot("4-other");
    await page.keyboard.press("Escape");
    await editor.quickInput().waitFor({ state: "hidden" });
    claim("of another file, which reads its command line, nothing is known: the user is asked");

    await editor.open("pyproject.toml");
    await editor.goToLine(2);
    await page.keyboard.type('ignore = ["item');
    const suggested = page.locator(".suggest-widget.visible .monaco-list-row", { hasText: "item-in-loop" }).first();
    await suggested.waitFor();
    await editor.shot("5-pyproject");
    await page.keyboard.press("Enter");
    await page.locator(".view-line", { hasText: /ignore.=.\["item-in-loop/ }).waitFor();
    claim("the rules are offered in pyproject.toml");
    await editor.command("File: Revert File");

    await page.reload();
    await page.locator(".tab.active").waitFor();
    await editor.open("train.py");
    await editor.command("Rooflint: Show Output");
    await editor.command("Rooflint: Profile Again");
    await printed("given ['--name', 'two words']");
    claim("with the window opened again, the file is profiled again as last time");

    await editor.command("Debug: Start Debugging");
    await page.locator(".debug-toolbar").waitFor();
    await editor.command("Rooflint: Profile This File");
    await editor.notification("train.py is being debugged: stop the debugger first.").waitFor();
    await editor.shot("6-debugged");
    claim("a file that is being debugged is not profiled");
  },
);
