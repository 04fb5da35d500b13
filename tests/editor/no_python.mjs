// No Python that can run the server: one message, with the way to the setting.

import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { claim, ROOT, scenario } from "./harness.mjs";

function prepare(base) {
  mkdirSync(join(base, "project"));
  cpSync(join(ROOT, "examples", "train.py"), join(base, "project", "train.py"));
  return join(base, "project");
}

await scenario("no_python", { prepare, settings: { "rooflint.serverPython": "/nowhere/python3" } }, async (editor) => {
  await editor.open("train.py");
  const message = editor.notification("rooflint.serverPython names /nowhere/python3, which does not exist");
  await message.waitFor();
  await editor.status("rooflint: not running").waitFor();
  await editor.shot("1-message");
  claim("one message says what is missing");
  await editor.command("Rooflint: Profile This File");
  await editor.notification("server is not running").waitFor();
  claim("profiling says so too");
  await message.locator("a", { hasText: "Open Setting" }).click();
  await editor.page.locator(".settings-editor", { hasText: "Server Python" }).waitFor();
  await editor.shot("2-setting");
  claim("its button leads to the setting");
});
