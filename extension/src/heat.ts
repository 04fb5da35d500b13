/** Marks lines by what they cost: a bar in the gutter and on the overview ruler, the redder the hotter. */

import {
  type DecorationOptions,
  type Disposable,
  OverviewRulerLane,
  Range,
  type TextEditor,
  type TextEditorDecorationType,
  ThemeColor,
  Uri,
  window,
  workspace,
} from "vscode";

/** What the server's `rooflint/heat` says of a file. */
export interface FileHeat {
  readonly uri: string;
  readonly lines: readonly HotLine[];
  /** The file's last profile in a sentence; null: there is none. */
  readonly summary: string | null;
}

interface HotLine {
  /** From 0. */
  readonly line: number;
  /** Of the GPU's work, or of the time that it idles. */
  readonly ratio: number;
  readonly text: string;
  /** It was changed since it was measured. */
  readonly stale: boolean;
}

/** From which share on a line has a colour, the hottest first. */
const LEVELS = [
  { from: 0.2, color: "#e5484d", width: 5 },
  { from: 0.1, color: "#f2762e", width: 4 },
  { from: 0.05, color: "#eda83a", width: 3 },
  { from: 0.01, color: "#c9b458", width: 2 },
] as const;

export class Heat implements Disposable {
  readonly #levels = LEVELS.map(({ from, color, width }) => ({ from, type: decoration(color, width) }));
  readonly #stale = staleDecoration();
  readonly #files = new Map<string, FileHeat>();
  readonly #watches: Disposable[];

  constructor() {
    this.#watches = [
      window.onDidChangeVisibleTextEditors(() => this.#drawAll()),
      workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("rooflint") && this.#drawAll()),
      workspace.onDidCloseTextDocument(({ uri }) => this.#files.delete(uri.toString())),
    ];
  }

  /** Takes in what the lines of a file cost. */
  show(heat: FileHeat): void {
    this.#files.set(Uri.parse(heat.uri).toString(), heat);
    this.#drawAll();
  }

  /** Forgets everything: the server that said it has ended. */
  clear(): void {
    this.#files.clear();
    this.#drawAll();
  }

  dispose(): void {
    for (const each of [...this.#watches, ...this.#levels.map(({ type }) => type), this.#stale]) {
      each.dispose();
    }
  }

  #drawAll(): void {
    for (const editor of window.visibleTextEditors) {
      this.#draw(editor);
    }
  }

  #draw(editor: TextEditor): void {
    const settings = workspace.getConfiguration("rooflint", editor.document.uri);
    const lines = this.#files.get(editor.document.uri.toString())?.lines ?? [];
    const here = lines.filter(({ line }) => line < editor.document.lineCount);
    const fresh = settings.get<boolean>("heat", true) ? here.filter(({ stale }) => !stale) : [];
    this.#levels.forEach(({ from, type }, level) => {
      const below = level === 0 ? Number.POSITIVE_INFINITY : (LEVELS[level - 1]?.from ?? 0);
      const found = fresh.filter(({ ratio }) => ratio >= from && ratio < below);
      editor.setDecorations(
        type,
        found.map(({ line }) => ({ range: new Range(line, 0, line, 0) })),
      );
    });
    const hints = settings.get<boolean>("inlayHints", true);
    const stale = hints ? here.filter((each) => each.stale) : [];
    editor.setDecorations(
      this.#stale,
      stale.map((each) => greyed(editor, each)),
    );
  }
}

/** What was measured of a line before it was changed, at its end. */
function greyed(editor: TextEditor, { line, text }: HotLine): DecorationOptions {
  const contentText = `${text} · measured before this change`;
  return { range: editor.document.lineAt(line).range, renderOptions: { after: { contentText } } };
}

function decoration(color: string, width: number): TextEditorDecorationType {
  const bar = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><rect x="${14 - width}" width="${width}" height="16" fill="${color}"/></svg>`;
  return window.createTextEditorDecorationType({
    gutterIconPath: Uri.parse(`data:image/svg+xml;base64,${Buffer.from(bar).toString("base64")}`),
    gutterIconSize: "contain",
    overviewRulerColor: color,
    overviewRulerLane: OverviewRulerLane.Left,
  });
}

function staleDecoration(): TextEditorDecorationType {
  return window.createTextEditorDecorationType({
    overviewRulerColor: new ThemeColor("disabledForeground"),
    overviewRulerLane: OverviewRulerLane.Left,
    after: { color: new ThemeColor("editorCodeLens.foreground"), fontStyle: "italic", margin: "0 0 0 1em" },
  });
}
