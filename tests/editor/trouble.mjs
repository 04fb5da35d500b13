// Pythons that cannot run the server, and a server that ends by itself.

import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { claim, ROOT, scenario, until } from "./harness.mjs";

let base;

function prepare(folder) {
  base = folder;
  mkdirSync(join(base, "project"));
  cpSync(join(ROOT, "examples", "train.py"), join(base, "project", "train.py"));
  return join(base, "project");
}

/** A program that answers as a Python does, and cannot run anything. */
function brokenPython() {
  const python = join(base, "python");
  writeFileSync(
    python,
    `#!/bin/sh\n[ "$2" = -c ] && echo '[3, 11, "${python}"]' && exit\necho no library >&2\nexit 3\n`,
  );
  chmodSync(python, 0o755);
  return python;
}

await scenario(
  "trouble",
  { prepare, settings: () => ({ "rooflint.serverPython": brokenPython() }) },
  async (editor) => {
    await editor.open("train.py");
    await editor.notification("rooflint's server did not start on").waitFor();
    await editor.status("rooflint: not running").waitFor();
    await editor.shot("1-broken");
    assert.equal(await editor.page.locator(".notifications-toasts .notification-list-item").count(), 1);
    claim("of a Python that is broken, one message tells");
    await editor.command("Rooflint: Profile This File");
    await editor.notification("server is not running").waitFor();
    claim("profiling says so too");

    setServerPython("/nowhere/python3");
    const message = editor.notification("rooflint.serverPython names /nowhere/python3, which does not exist");
    await message.waitFor();
    await editor.shot("2-missing");
    await message.locator("a", { hasText: "Open Setting" }).click();
    await editor.page.locator(".settings-editor", { hasText: "Server Python" }).waitFor();
    await editor.shot("3-setting");
    claim("of a Python that is missing, a message tells, and its button leads to the setting");
    await editor.page.keyboard.press("Escape");

    setServerPython("");
    await editor.status("rooflint: ready").waitFor();
    claim("with the setting mended, the server starts");

    await editor.command("Problems: Focus on Problems View");
    await typeBehind(editor, "loss.item()", "; loss.tolist()");
    await editor.problem("loss.tolist()").first().waitFor();
    const ended = serverProcess();
    process.kill(ended, "SIGKILL");
    await until("another server runs", () => serverProcess() && serverProcess() !== ended);
    await editor.status("rooflint: ready").waitFor();
    await editor.problem("loss.tolist()").first().waitFor();
    await typeBehind(editor, "batch.to(device)", "; batch.tolist()"); // the list draws its first rows alone
    await editor.problem("batch.tolist()").first().waitFor();
    assert.ok(!readFileSync(join(base, "project", "train.py"), "utf8").includes("tolist"));
    claim("a server that ends by itself is started again, and knows what was typed and not saved");
  },
);

async function typeBehind(editor, written, text) {
  const lines = readFileSync(join(base, "project", "train.py"), "utf8").split("\n");
  await editor.goToLine(lines.findIndex((line) => line.includes(written)) + 1);
  await editor.page.keyboard.press("End");
  await editor.page.keyboard.type(text);
}

function setServerPython(python) {
  for (const kind of ["User", "Machine"]) {
    const file = join(base, "user-data", kind, "settings.json");
    const settings = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(`${file}.new`, JSON.stringify({ ...settings, "rooflint.serverPython": python }, null, 2));
    renameSync(`${file}.new`, file); // in one step: half a file would be read as other settings
  }
}

/** The process that runs this editor's server; undefined: none. */
function serverProcess() {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      if (command.includes(join(base, "extensions")) && command.includes("launch.py")) {
        return Number(pid);
      }
    } catch {
      // It has ended meanwhile.
    }
  }
  return undefined;
}
