/** "Compare With Previous": what is new in a file's last recording, as a document that nobody edits. */

import * as path from "node:path";
import { type Disposable, EventEmitter, type TextDocumentContentProvider, Uri, window, workspace } from "vscode";
import { ExecuteCommandRequest } from "vscode-languageclient/node";
import { type FromToolbar, fileOf } from "./notebook";
import { Refusal } from "./request";
import type { Server } from "./server";

const SCHEME = "rooflint-comparison";

export class Comparisons implements TextDocumentContentProvider, Disposable {
  readonly #server: Server;
  readonly #registration: Disposable;
  readonly #changed = new EventEmitter<Uri>();
  readonly onDidChange = this.#changed.event;
  readonly #texts = new Map<string, string>();

  constructor(server: Server) {
    this.#server = server;
    this.#registration = workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  /** Opens the differences, or brings the document up to date that shows them. */
  async show(given: Uri | FromToolbar | undefined): Promise<void> {
    const uri = fileOf(given);
    const file = uri?.scheme === SCHEME ? Uri.parse(uri.query) : uri;
    if (!file) {
      throw new Refusal("There is no file to compare: open one that was profiled twice.");
    }
    const page = Uri.from({
      scheme: SCHEME,
      path: `/${path.basename(file.fsPath)}: before and now`,
      query: file.toString(),
    });
    this.#texts.set(page.toString(), await this.#compare(file));
    this.#changed.fire(page);
    await window.showTextDocument(await workspace.openTextDocument(page), { preview: true });
  }

  /** What was compared last; a window that was opened again has not compared yet. */
  provideTextDocumentContent(page: Uri): string {
    return this.#texts.get(page.toString()) ?? "To compare, run Rooflint: Compare With Previous.\n";
  }

  dispose(): void {
    this.#registration.dispose();
    this.#changed.dispose();
  }

  async #compare(file: Uri): Promise<string> {
    const client = await this.#server.running();
    if (!client) {
      throw new Refusal("rooflint's server is not running: see its log for why.");
    }
    const { text }: { text: string } = await client.sendRequest(ExecuteCommandRequest.type, {
      command: "rooflint.server.compare",
      arguments: [file.toString()],
    });
    return text;
  }
}
