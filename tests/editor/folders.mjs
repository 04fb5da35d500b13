// Each folder of a workspace has its own interpreter and variables: asked inside VS Code's extension host.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HERE, PYTHON, scenario } from "./harness.mjs";

/** Two folders, each with a venv and an env file; the venvs share the packages of the tests' Python. */
function prepare(base) {
  const ask =
    "import json, sysconfig, sys; print(json.dumps([*{sysconfig.get_path('purelib'), *filter(None, sys.path[1:])}]))";
  const packages = JSON.parse(execFileSync(PYTHON, ["-c", ask], { encoding: "utf8" }));
  for (const name of ["one", "two"]) {
    const folder = join(base, name);
    mkdirSync(join(folder, ".vscode"), { recursive: true });
    cpSync(join(HERE, "workspace"), folder, { recursive: true });
    execFileSync(PYTHON, ["-m", "venv", "--without-pip", join(folder, ".venv")]);
    const site = execFileSync(
      join(folder, ".venv/bin/python"),
      ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
      { encoding: "utf8" },
    );
    writeFileSync(join(site.trim(), "shared.pth"), packages.join("\n"));
    writeFileSync(join(folder, ".env"), `ROOFLINT_TEST_FOLDER=${name}\n`);
    const settings = {
      // Folder two has the wrong one selected, and says so in our own setting.
      "python.defaultInterpreterPath": join(base, "one", ".venv/bin/python"),
      ...(name === "two" && { "rooflint.python": "${workspaceFolder}/.venv/bin/python" }),
      "rooflint.profile.args": ["--name", name],
    };
    writeFileSync(join(folder, ".vscode/settings.json"), JSON.stringify(settings));
  }
  writeFileSync(join(base, "two", "pyproject.toml"), '[tool.rooflint]\nignore = ["item-in-loop"]\n');
  const workspace = join(base, "both.code-workspace");
  writeFileSync(workspace, JSON.stringify({ folders: [{ path: "one" }, { path: "two" }] }));
  return workspace;
}

await scenario("folders", { prepare, hostTests: join(HERE, "host.js") }, async (editor) => {
  assert.ok(await editor.hostTests.ended, "the script in the extension host failed");
});
