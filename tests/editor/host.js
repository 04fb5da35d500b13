// Runs inside VS Code's extension host, beside the installed extension; what it logs reaches the scenario.

const assert = require("node:assert/strict");
const fs = require("node:fs/promises");
const path = require("node:path");
const vscode = require("vscode");

exports.run = async () => {
  try {
    await main();
  } catch (error) {
    claim(error.stack);
    throw error;
  }
};

async function main() {
  const extension = vscode.extensions.getExtension("rooflint.rooflint");
  assert.equal(extension?.extensionKind, vscode.ExtensionKind.Workspace);
  const [one, two] = vscode.workspace.workspaceFolders.map(({ uri }) => uri);

  const first = vscode.Uri.joinPath(one, "report.py");
  const editor = await vscode.window.showTextDocument(first);
  await editor.edit((edit) => edit.insert(new vscode.Position(0, 0), "# not saved yet\n"));
  await vscode.commands.executeCommand("rooflint.profileFile");
  assert.ok(!editor.document.isDirty);
  await assertRunIn(one, "one");
  claim("the active file is saved, then run in its folder's environment");

  await vscode.commands.executeCommand("rooflint.profileFile", vscode.Uri.joinPath(two, "report.py"));
  await assertRunIn(two, "two");
  claim("a file of another folder is run in that folder's environment");

  const long = vscode.commands.executeCommand("rooflint.profileFile", first);
  await fs.rm(path.join(two.fsPath, "report.json"));
  await vscode.commands.executeCommand("rooflint.profileFile", vscode.Uri.joinPath(two, "report.py"));
  await long;
  await assert.rejects(fs.access(path.join(two.fsPath, "report.json")));
  claim("a second run while one is on is not begun");

  const commands = await vscode.commands.getCommands(true);
  for (const command of ["profileFile", "clearResults", "showOutput", "showLog", "restartServer"]) {
    assert.ok(commands.includes(`rooflint.${command}`), command);
  }
  await vscode.commands.executeCommand("rooflint.clearResults");
  await vscode.commands.executeCommand("rooflint.restartServer");
  assert.deepEqual(await rulesIn(one), ["copy-to-host", "item-in-loop"]);
  claim("after a restart the server checks files again");

  assert.deepEqual(await rulesIn(two), ["copy-to-host"]);
  claim("a folder's pyproject.toml says which rules hold in it");
}

/** The rules that speak up in a folder's waits.py. */
async function rulesIn(folder) {
  const file = vscode.Uri.joinPath(folder, "waits.py");
  await vscode.window.showTextDocument(file);
  const diagnostics = await until("a diagnostic", () => {
    const all = vscode.languages.getDiagnostics(file);
    return all.length > 0 && all;
  });
  assert.ok(diagnostics.every(({ source }) => source === "rooflint"));
  return diagnostics.map(({ code }) => code.value ?? code).sort();
}

async function assertRunIn(folder, name) {
  const report = JSON.parse(await fs.readFile(path.join(folder.fsPath, "report.json"), "utf8"));
  assert.deepEqual(report, {
    executable: path.join(folder.fsPath, ".venv/bin/python"),
    argv: ["--name", name],
    cwd: folder.fsPath,
    path: path.join(folder.fsPath, ".venv/bin"),
    environment: {
      VIRTUAL_ENV: path.join(folder.fsPath, ".venv"),
      ROOFLINT_TEST_FOLDER: name,
      PYTHONPATH: null,
    },
    editor: [],
  });
}

async function until(what, ask) {
  for (let attempt = 0; attempt < 600; attempt++) {
    const answer = await ask();
    if (answer) {
      return answer;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`not within 30 s: ${what}`);
}

function claim(text) {
  console.log(`claim: ${text}`);
}
