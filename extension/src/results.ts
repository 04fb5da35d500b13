/** What can be done with results: bring some in, clear them, explain, silence a rule. */

import {
  type CodeAction,
  commands,
  type Diagnostic,
  env,
  languages,
  type OutputChannel,
  type TextEditor,
  Uri,
  window,
  workspace,
} from "vscode";
import { ExecuteCommandRequest, HoverRequest, type LanguageClient } from "vscode-languageclient/node";
import { notices } from "./notices";
import { Refusal } from "./request";
import { pageOf } from "./rulePages";
import type { Server } from "./server";
import { whatIsHere } from "./summary";

interface Imported {
  readonly recording: string;
  readonly summary: string;
  readonly notes: readonly string[];
  /** The file that each recorded one is. */
  readonly matched: Readonly<Record<string, string>>;
  readonly unmatched: readonly string[];
}

/** Shows a recording or trace that was made elsewhere, and tells which of its files are here. */
export async function importRecording(server: Server, output: OutputChannel, given: Uri | undefined): Promise<void> {
  const uri = given ?? (await askForRecording());
  if (!uri) {
    return;
  }
  const client = await running(server);
  const { recording, summary, notes, matched, unmatched }: Imported = await client.sendRequest(
    ExecuteCommandRequest.type,
    { command: "rooflint.server.import", arguments: [uri.toString()] },
  );
  const pairs = Object.entries(matched).map(([recorded, here]) => `  ${recorded} is ${here}`);
  const lost = unmatched.map((recorded) => `  ${recorded} is none of this project's files`);
  output.appendLine(["", summary, ...notes, `Imported into ${recording}`, ...pairs, ...lost].join("\n"));
  const choice = await notices.inform(`${whatIsHere(pairs.length, lost.length)}${summary}`, "Show Output");
  if (choice) {
    output.show(true);
  }
}

export async function clearResults(server: Server): Promise<void> {
  const client = await server.running();
  await client?.sendRequest(ExecuteCommandRequest.type, { command: "rooflint.server.clear", arguments: [] });
}

/** On some systems a dialog takes either files or folders. */
async function askForRecording(): Promise<Uri | undefined> {
  const folder = "A recording folder of rooflint…";
  const file = "A trace of torch.profiler, or a report of Nsight Compute…";
  const what = await window.showQuickPick([folder, file], { title: "Import Recording" });
  if (!what) {
    return undefined;
  }
  const isFolder = what === folder;
  const defaultUri = workspace.workspaceFolders?.[0]?.uri;
  const chosen = await window.showOpenDialog({
    canSelectFiles: !isFolder,
    canSelectFolders: isFolder,
    openLabel: "Import",
    ...(defaultUri ? { defaultUri } : {}),
  });
  return chosen?.[0];
}

/** Opens the page of a rule, or that of the diagnostic at the cursor. */
export async function showRule(given: string | undefined): Promise<void> {
  const rule = given ?? (await ruleAtCursor());
  if (!rule) {
    throw new Refusal("rooflint says nothing of this line: put the cursor on one that it underlines.");
  }
  await commands.executeCommand("vscode.open", pageOf(rule));
}

async function ruleAtCursor(): Promise<string | undefined> {
  const editor = window.activeTextEditor;
  const names = [...new Set(editor ? onLine(editor).flatMap((each) => codeOf(each) ?? []) : [])];
  return names.length > 1 ? window.showQuickPick(names, { title: "Show Rule" }) : names[0];
}

/** Leads to the file with every single event, and to the viewer that opens it. */
export async function showTrace(file: string | undefined): Promise<void> {
  if (!file) {
    throw new Refusal("Point at a line that was measured and follow the link below its numbers.");
  }
  const [copy, open] = ["Copy Path", "Open Perfetto"];
  const choice = await notices.inform(
    `Every event of the run is in ${file}. Perfetto reads it in your browser and sends it nowhere: open that file there.`,
    copy,
    open,
  );
  if (choice === copy) {
    await env.clipboard.writeText(file);
  }
  if (choice === open) {
    await env.openExternal(Uri.parse("https://ui.perfetto.dev"));
  }
}

/** Shows the card of the cursor's line. */
export async function explainLine(server: Server): Promise<void> {
  const editor = window.activeTextEditor;
  if (!editor) {
    throw new Refusal("There is no line to explain: open a Python file first.");
  }
  const client = await running(server);
  const position = editor.selection.active;
  const textDocument = client.code2ProtocolConverter.asTextDocumentIdentifier(editor.document);
  if (!(await client.sendRequest(HoverRequest.type, { textDocument, position }))) {
    throw new Refusal(`Nothing was measured or found on line ${position.line + 1}.`);
  }
  await commands.executeCommand("editor.action.showHover");
}

/** Writes the comment that silences what rooflint says of the cursor's line. */
export async function ignoreRule(): Promise<void> {
  const editor = window.activeTextEditor;
  const { document, selection } = editor ?? {};
  const actions = document
    ? await commands.executeCommand<CodeAction[]>(
        "vscode.executeCodeActionProvider",
        document.uri,
        document.lineAt(selection?.active.line ?? 0).range,
        "quickfix",
      )
    : [];
  const silencing = actions.filter(({ title, edit }) => edit && /^Ignore /.test(title));
  const [first] = silencing;
  const titles = silencing.map(({ title }) => title);
  const title = titles.length > 1 ? await window.showQuickPick(titles) : first?.title;
  const edit = silencing.find((each) => each.title === title)?.edit;
  if (!first) {
    throw new Refusal("No rule speaks of this line: put the cursor on one that rooflint underlines.");
  }
  if (edit) {
    await workspace.applyEdit(edit);
  }
}

function onLine(editor: TextEditor): Diagnostic[] {
  const { line } = editor.selection.active;
  const all = languages.getDiagnostics(editor.document.uri);
  return all.filter(({ source, range }) => source === "rooflint" && range.start.line <= line && line <= range.end.line);
}

function codeOf({ code }: Diagnostic): string | undefined {
  const value = typeof code === "object" ? code.value : code;
  return value === undefined ? undefined : String(value);
}

async function running(server: Server): Promise<LanguageClient> {
  const client = await server.running();
  if (!client) {
    throw new Refusal("rooflint's server is not running: see its log for why.");
  }
  return client;
}
