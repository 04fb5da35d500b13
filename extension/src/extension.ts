/** What VS Code calls: puts the pieces together when the first Python file opens. */

import { commands, type ExtensionContext, Uri, window, workspace } from "vscode";
import { Ways } from "./arguments";
import { Comparisons } from "./comparison";
import { Heat } from "./heat";
import type { FromToolbar } from "./notebook";
import { notices } from "./notices";
import { type How, Profiler } from "./profile";
import { registerPyproject } from "./pyprojectEditor";
import { onInterpreterSelected } from "./pythonExtension";
import { Refusal } from "./request";
import { clearResults, explainLine, ignoreRule, importRecording, showRule, showTrace } from "./results";
import { Roofline } from "./roofline";
import { registerRulePages } from "./rulePages";
import { Server } from "./server";
import { Status } from "./status";

let running: Server | undefined;

export function activate(context: ExtensionContext): void {
  const output = window.createOutputChannel("rooflint");
  const status = new Status();
  const heat = new Heat();
  const profiler = new Profiler(output, status, heat, new Ways(context.workspaceState));
  const server = new Server(context, status, profiler);
  const profile = (how: How) => (file?: Uri | FromToolbar | string) =>
    profiler.profileFile(server, typeof file === "string" ? Uri.parse(file) : file, how);
  const comparisons = new Comparisons(server);
  running = server;
  context.subscriptions.push(
    output,
    status,
    heat,
    server,
    comparisons,
    registerRulePages(context.asAbsolutePath("docs")),
    registerPyproject(context.asAbsolutePath("docs")),
    new Roofline(context, server, status),
    commands.registerCommand("rooflint.profileFile", profile("as known")),
    commands.registerCommand("rooflint.profileWithArguments", profile("ask")),
    commands.registerCommand("rooflint.profileAgain", profile("again")),
    commands.registerCommand("rooflint.restartServer", () => server.restart()),
    commands.registerCommand("rooflint.showOutput", () => output.show(true)),
    commands.registerCommand("rooflint.showLog", () => server.showLog()),
    told("compareWithPrevious", (file?: Uri | FromToolbar) => comparisons.show(file)),
    told("importRecording", (recording?: Uri) => importRecording(server, output, recording)),
    told("clearResults", () => clearResults(server)),
    told("showRule", (rule?: string) => showRule(rule)),
    told("showTrace", (file?: string) => showTrace(file)),
    told("explainLine", () => explainLine(server)),
    told("ignoreRule", () => ignoreRule()),
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

/** A command whose failures are told in a sentence: ours as a warning, anything else as an error. */
function told<T>(name: string, action: (argument?: T) => Promise<void>) {
  return commands.registerCommand(`rooflint.${name}`, async (argument?: T) => {
    try {
      await action(argument);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      void (error instanceof Refusal ? notices.warn(message) : notices.fail(message));
    }
  });
}
