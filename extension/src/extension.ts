/** What VS Code calls: puts the pieces together when the first Python file opens. */

import { commands, type ExtensionContext, type Uri, window, workspace } from "vscode";
import { ExecuteCommandRequest } from "vscode-languageclient/node";
import type { FromToolbar } from "./notebook";
import { Profiler } from "./profile";
import { onInterpreterSelected } from "./pythonExtension";
import { Roofline } from "./roofline";
import { Server } from "./server";
import { Status } from "./status";

let running: Server | undefined;

export function activate(context: ExtensionContext): void {
  const output = window.createOutputChannel("rooflint");
  const status = new Status();
  const profiler = new Profiler(output, status);
  const server = new Server(context, status, profiler);
  running = server;
  context.subscriptions.push(
    output,
    status,
    server,
    new Roofline(context, server, status),
    commands.registerCommand("rooflint.profileFile", (file?: Uri | FromToolbar) => profiler.profileFile(server, file)),
    commands.registerCommand("rooflint.restartServer", () => server.restart()),
    commands.registerCommand("rooflint.showOutput", () => output.show(true)),
    commands.registerCommand("rooflint.showLog", () => server.showLog()),
    commands.registerCommand("rooflint.clearResults", async () => {
      const client = await server.running();
      await client?.sendRequest(ExecuteCommandRequest.type, { command: "rooflint.server.clear", arguments: [] });
    }),
    workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("rooflint.serverPython")) {
        void server.restart();
      }
    }),
    workspace.onDidGrantWorkspaceTrust(() => void server.restart()),
  );
  void server.restart();
  void onInterpreterSelected(() => void server.retry()).then((watch) => watch && context.subscriptions.push(watch));
}

export async function deactivate(): Promise<void> {
  await running?.stop();
}
