/** Where the page is shown: in VS Code, which opens lines, or alone. */

interface VsCode {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}

declare const acquireVsCodeApi: (() => VsCode) | undefined;

const vscode = typeof acquireVsCodeApi === "function" ? acquireVsCodeApi() : undefined;

export const inEditor = vscode !== undefined;

/** Has the editor show a line. */
export function reveal(path: string, line: number): void {
  vscode?.postMessage({ type: "reveal", path, line });
}

/** What the page remembers when it is shown again: which view, which line. */
export interface State {
  readonly view?: "lines" | "kernels";
  readonly line?: string;
  readonly sort?: string;
}

export function remember(part: State): void {
  vscode?.setState({ ...recall(), ...part });
}

export function recall(): State {
  const state = vscode?.getState();
  return typeof state === "object" && state !== null ? (state as State) : {};
}

/** A link that opens a line in VS Code from a browser. */
export function editorLink(path: string, line: number): string {
  const parts = path.replaceAll("\\", "/").split("/").map(encodeURIComponent).join("/");
  return `vscode://file${parts.startsWith("/") ? "" : "/"}${parts}:${line}`;
}
