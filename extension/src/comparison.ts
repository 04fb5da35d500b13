/** "Compare With Previous": what is new in a file's last recording, as a document that nobody edits. */

import * as path from "node:path";
import {
  type Disposable,
  DocumentLink,
  type DocumentLinkProvider,
  EventEmitter,
  languages,
  type TextDocument,
  type TextDocumentContentProvider,
  Uri,
  window,
  workspace,
} from "vscode";
import { ExecuteCommandRequest } from "vscode-languageclient/node";
import { type FromToolbar, fileOf } from "./notebook";
import { Refusal } from "./request";
import type { Server } from "./server";

const SCHEME = "rooflint-comparison";

/** A line that a row of the text begins with, as the server knows it. */
interface Place {
  readonly row: number;
  readonly root: string;
  readonly path: string;
  readonly line: number;
}

interface Compared {
  readonly text: string;
  readonly places: readonly Place[];
}

class PlaceLink extends DocumentLink {
  place?: Place;
}

export class Comparisons implements TextDocumentContentProvider, DocumentLinkProvider<PlaceLink>, Disposable {
  readonly #server: Server;
  readonly #registrations: readonly Disposable[];
  readonly #changed = new EventEmitter<Uri>();
  readonly onDidChange = this.#changed.event;
  readonly #compared = new Map<string, Compared>();

  constructor(server: Server) {
    this.#server = server;
    this.#registrations = [
      workspace.registerTextDocumentContentProvider(SCHEME, this),
      languages.registerDocumentLinkProvider({ scheme: SCHEME }, this),
    ];
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
    this.#compared.set(page.toString(), await this.#compare(file));
    this.#changed.fire(page);
    await window.showTextDocument(await workspace.openTextDocument(page), { preview: true });
  }

  /** What was compared last; a window that was opened again has not compared yet. */
  provideTextDocumentContent(page: Uri): string {
    return this.#compared.get(page.toString())?.text ?? "To compare, run Rooflint: Compare With Previous.\n";
  }

  /** The places that rows begin with lead to their lines. */
  provideDocumentLinks(page: TextDocument): PlaceLink[] {
    return (this.#compared.get(page.uri.toString())?.places ?? []).map((place) => {
      const text = page.lineAt(place.row);
      const start = text.firstNonWhitespaceCharacterIndex;
      const length = /^\S+(?::cell \d+:\d+)?/.exec(text.text.slice(start))?.[0].length ?? 0;
      const link = new PlaceLink(
        text.range.with(text.range.start.translate(0, start), text.range.start.translate(0, start + length)),
      );
      link.place = place;
      return link;
    });
  }

  /** Asked when it is followed: the line is where it is by then. */
  async resolveDocumentLink(link: PlaceLink): Promise<PlaceLink> {
    const client = await this.#server.running();
    if (client && link.place) {
      const { root, path, line: recorded } = link.place;
      const { uri, line }: { uri: string; line: number } = await client.sendRequest(ExecuteCommandRequest.type, {
        command: "rooflint.server.locate",
        arguments: [{ root, path, line: recorded }],
      });
      link.target = Uri.parse(uri).with({ fragment: `L${line + 1}` });
    }
    return link;
  }

  dispose(): void {
    for (const registration of this.#registrations) {
      registration.dispose();
    }
    this.#changed.dispose();
  }

  async #compare(file: Uri): Promise<Compared> {
    const client = await this.#server.running();
    if (!client) {
      throw new Refusal("rooflint's server is not running: see its log for why.");
    }
    return client.sendRequest(ExecuteCommandRequest.type, {
      command: "rooflint.server.compare",
      arguments: [file.toString()],
    });
  }
}
