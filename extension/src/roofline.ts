/** "Show Roofline": the page of the server's beside the editor, kept up to date, and its lines opened where they are. */

import {
  commands,
  type Disposable,
  type ExtensionContext,
  Position,
  Range,
  TextEditorRevealType,
  Uri,
  ViewColumn,
  type WebviewPanel,
  window,
} from "vscode";
import { ExecuteCommandRequest } from "vscode-languageclient/node";
import { notices } from "./notices";
import type { Server } from "./server";
import type { Status } from "./status";

const VIEW = "rooflint.roofline";

interface Page {
  readonly root: string;
  readonly html: string;
  /** What the page calls the line that was asked for. */
  readonly shown: { readonly path: string; readonly line: number } | null;
}

export class Roofline implements Disposable {
  readonly #server: Server;
  readonly #watches: Disposable[];
  #panel: WebviewPanel | undefined;
  /** A file of the project that is shown. */
  #file: Uri | undefined;
  #root: string | undefined;

  constructor(context: ExtensionContext, server: Server, status: Status) {
    this.#server = server;
    this.#watches = [
      commands.registerCommand("rooflint.showRoofline", (file?: unknown, line?: unknown) => this.show(file, line)),
      status.onMeasured((root) => void this.#refresh(root)),
      window.registerWebviewPanelSerializer(VIEW, {
        deserializeWebviewPanel: async (panel, state) => {
          const file = (state as { file?: unknown } | undefined)?.file ?? context.workspaceState.get<string>(VIEW);
          this.#adopt(panel);
          this.#file = typeof file === "string" ? Uri.parse(file) : undefined;
          panel.webview.html = "The roofline is shown once the last recording is read.";
          await this.#refresh();
        },
      }),
    ];
    this.#remember = (file) => void context.workspaceState.update(VIEW, file.toString());
  }

  readonly #remember: (file: Uri) => void;

  /** Shows the project of a file, the active editor's by default, and a line of it if a link names one. */
  async show(file?: unknown, line?: unknown): Promise<void> {
    const uri = toUri(file) ?? window.activeTextEditor?.document.uri;
    if (!uri) {
      void notices.warn("There is no file whose roofline could be shown: open one first.");
      return;
    }
    try {
      const page = await this.#ask<Page>("rooflint.server.page", uri.toString(), line);
      this.#file = uri;
      this.#remember(uri);
      if (!this.#panel) {
        this.#adopt(
          window.createWebviewPanel(VIEW, "Roofline", { viewColumn: ViewColumn.Beside, preserveFocus: true }),
        );
      }
      this.#draw(page);
      this.#panel?.reveal(undefined, true);
      if (page.shown) {
        void this.#panel?.webview.postMessage({ type: "show", ...page.shown });
      }
    } catch (error) {
      void notices.warn(error instanceof Error ? error.message : String(error));
    }
  }

  dispose(): void {
    this.#panel?.dispose();
    for (const watch of this.#watches) {
      watch.dispose();
    }
  }

  #adopt(panel: WebviewPanel): void {
    this.#panel = panel;
    panel.webview.options = { enableScripts: true, localResourceRoots: [] };
    panel.onDidDispose(() => {
      this.#panel = undefined;
    });
    panel.webview.onDidReceiveMessage((message: unknown) => void this.#reveal(message));
  }

  #draw({ root, html }: Page): void {
    this.#root = root;
    if (this.#panel && this.#panel.webview.html !== html) {
      this.#panel.webview.html = html;
    }
  }

  /** Draws what is now known: after a profile, of the project that is shown. */
  async #refresh(root?: string): Promise<void> {
    if (!this.#panel || !this.#file || (root !== undefined && this.#root !== undefined && root !== this.#root)) {
      return;
    }
    try {
      this.#draw(await this.#ask<Page>("rooflint.server.page", this.#file.toString()));
    } catch {
      // Nothing is known any more, or not yet: what is shown stays until something is.
    }
  }

  /** Opens a line that was chosen on the page, beside it. */
  async #reveal(message: unknown): Promise<void> {
    const { type, path, line } = (message ?? {}) as { type?: unknown; path?: unknown; line?: unknown };
    if (type !== "reveal" || typeof path !== "string" || typeof line !== "number" || !this.#root) {
      return;
    }
    try {
      const place = await this.#ask<{ uri: string; line: number }>("rooflint.server.locate", {
        root: this.#root,
        path,
        line,
      });
      const uri = Uri.parse(place.uri);
      const open = window.visibleTextEditors.find(({ document }) => document.uri.toString() === uri.toString());
      const start = new Position(place.line, 0);
      const editor = await window.showTextDocument(uri, {
        viewColumn: open?.viewColumn ?? ViewColumn.One,
        preserveFocus: true,
        selection: new Range(start, start),
      });
      editor.revealRange(new Range(start, start), TextEditorRevealType.InCenterIfOutsideViewport);
    } catch (error) {
      void notices.warn(error instanceof Error ? error.message : String(error));
    }
  }

  async #ask<T>(command: string, ...given: unknown[]): Promise<T> {
    const client = await this.#server.running();
    if (!client) {
      throw new Error("rooflint's server is not running: see its log for why.");
    }
    return client.sendRequest(ExecuteCommandRequest.type, {
      command,
      arguments: given.filter((each) => each !== undefined),
    });
  }
}

/** A file as menus, links and other extensions name it. */
function toUri(file: unknown): Uri | undefined {
  if (file instanceof Uri) {
    return file;
  }
  if (typeof file === "string" && file) {
    return /^[a-z][a-z0-9+.-]+:/i.test(file) ? Uri.parse(file) : Uri.file(file);
  }
  return undefined;
}
