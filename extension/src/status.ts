/** The status bar item: what rooflint is doing, and what the last profile of this project said. */

import * as path from "node:path";
import { type Disposable, EventEmitter, StatusBarAlignment, ThemeColor, Uri, window, workspace } from "vscode";
import { fileOf } from "./notebook";
import { shorten } from "./summary";

export class Status implements Disposable {
  readonly #item = window.createStatusBarItem("rooflint.status", StatusBarAlignment.Right, 100);
  readonly #watch: Disposable;
  readonly #measured = new EventEmitter<string>();
  /** The folder of a project of which something else is known now. */
  readonly onMeasured = this.#measured.event;
  /** The last profile's summary, by project. */
  readonly #summaries = new Map<string, string>();
  /** And by file, of those that are open; null: nothing is known of it. */
  readonly #files = new Map<string, string | null>();
  #state: "starting" | "ready" | "failed" = "starting";
  #profiling: string | undefined;

  constructor() {
    this.#item.name = "rooflint";
    this.#watch = window.onDidChangeActiveTextEditor(() => this.#show());
    this.#show();
  }

  starting(): void {
    this.#state = "starting";
    this.#show();
  }

  ready(): void {
    this.#state = "ready";
    this.#show();
  }

  failed(): void {
    this.#state = "failed";
    this.#show();
  }

  /** Names the file that is being profiled; undefined when that is over. */
  profiling(fileName: string | undefined): void {
    this.#profiling = fileName;
    this.#show();
  }

  /** Takes in what is now known of a project; null: nothing. */
  measured(root: string, summary: string | null): void {
    if (summary) {
      this.#summaries.set(root, summary);
    } else {
      this.#summaries.delete(root);
    }
    this.#measured.fire(root);
    this.#show();
  }

  /** Takes in what is now known of an open file. */
  fileMeasured(uri: string, summary: string | null): void {
    this.#files.set(Uri.parse(uri).toString(), summary);
    this.#show();
  }

  dispose(): void {
    this.#watch.dispose();
    this.#measured.dispose();
    this.#item.dispose();
  }

  #show(): void {
    const document = window.activeTextEditor?.document;
    const file = document?.languageId === "python" ? fileOf(document.uri) : undefined;
    const own = document && this.#files.get(document.uri.toString());
    const summary = own ?? (file && this.#summaries.get(rootOf(file)));
    const { text, tooltip, command } = this.#words(summary);
    this.#item.text = text;
    this.#item.tooltip = tooltip;
    this.#item.command = command;
    this.#item.backgroundColor =
      this.#state === "failed" ? new ThemeColor("statusBarItem.warningBackground") : undefined;
    if (file || this.#profiling) {
      this.#item.show();
    } else {
      this.#item.hide();
    }
  }

  #words(summary: string | undefined): { text: string; tooltip: string; command: string } {
    if (this.#profiling) {
      return {
        text: `$(loading~spin) rooflint: profiling ${this.#profiling}`,
        tooltip: "Show the script's output",
        command: "rooflint.showOutput",
      };
    }
    switch (this.#state) {
      case "starting":
        return { text: "$(loading~spin) rooflint", tooltip: "rooflint is starting", command: "rooflint.showLog" };
      case "failed":
        return {
          text: "$(warning) rooflint: not running",
          tooltip: "Why, in the server's log",
          command: "rooflint.showLog",
        };
      case "ready":
        return summary
          ? {
              text: `$(dashboard) ${shorten(summary)}`,
              tooltip: `${summary}\n\nClick: the roofline`,
              command: "rooflint.showRoofline",
            }
          : {
              text: "$(dashboard) rooflint: ready",
              tooltip: "Show the output of rooflint",
              command: "rooflint.showOutput",
            };
    }
  }
}

/** The project of a file as the server sees it: the workspace folder around it, or its own. */
function rootOf(file: Uri): string {
  return workspace.getWorkspaceFolder(file)?.uri.fsPath ?? path.dirname(file.fsPath);
}
