// The part of the Python extension's API that others build on: which interpreter a folder uses, and its variables.
// https://github.com/microsoft/vscode-python/blob/main/src/client/api/types.ts
const fs = require("node:fs");
const vscode = require("vscode");

exports.activate = () => {
  vscode.debug.registerDebugAdapterDescriptorFactory("debugpy", {
    createDebugAdapterDescriptor: () => new vscode.DebugAdapterInlineImplementation(new IdleDebugger()),
  });
  return api;
};

const api = {
  environments: {
    getActiveEnvironmentPath: (resource) => {
      const path = setting("defaultInterpreterPath", resource);
      return { id: path, path };
    },
    resolveEnvironment: async (environment) => {
      const path = typeof environment === "string" ? environment : environment.path;
      return path ? { id: path, path, executable: { uri: vscode.Uri.file(path) } } : undefined;
    },
    onDidChangeActiveEnvironmentPath: (listener) =>
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (change.affectsConfiguration("python.defaultInterpreterPath")) {
          listener({});
        }
      }),
    getEnvironmentVariables: (resource) => ({ ...process.env, ...envFile(resource) }),
  },
};

/** A debugger that says yes to all, and runs nothing. */
class IdleDebugger {
  #sent = new vscode.EventEmitter();
  onDidSendMessage = this.#sent.event;

  handleMessage({ seq, command }) {
    this.#sent.fire({ type: "response", request_seq: seq, command, success: true, body: { threads: [] } });
    if (command === "initialize") {
      this.#sent.fire({ type: "event", event: "initialized" });
    }
  }

  dispose() {}
}

function setting(name, resource) {
  return vscode.workspace.getConfiguration("python", resource).get(name, "");
}

function envFile(resource) {
  const folder = vscode.workspace.getWorkspaceFolder(resource)?.uri.fsPath ?? "";
  const file = setting("envFile", resource).replace("${workspaceFolder}", folder);
  const lines = fs.existsSync(file) ? fs.readFileSync(file, "utf8").split("\n") : [];
  return Object.fromEntries(lines.filter((line) => line.includes("=")).map((line) => line.split("=", 2)));
}
