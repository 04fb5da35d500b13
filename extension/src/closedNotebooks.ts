/** Problems of notebooks that are not open, in their cells: the server counts these, and VS Code names them. */

import { env, Range, Uri, workspace } from "vscode";
import { vsdiag } from "vscode-languageclient/node";
import { nameOfCell, type Place, placeOf } from "./cellNames";

type Report = vsdiag.WorkspaceDocumentDiagnosticReport;
type Problem = vsdiag.FullDocumentDiagnosticReport["items"][number] & { data?: { cell?: unknown } };

export class ClosedNotebooks {
  /** The cells that something was said of, by notebook. */
  readonly #cells = new Map<string, Uri[]>();
  #names = new Set<string>();
  /** Where the files of a remote are. */
  #remote: Place | undefined;

  /** A report of a notebook as one of each of its cells; any other report as it is. */
  spread(report: Report): Report[] {
    if (this.#names.has(report.uri.toString())) {
      return []; // The server knows the cell by the name it had when it was open, and says nothing of that.
    }
    if (report.kind !== vsdiag.DocumentDiagnosticReportKind.full || !report.uri.path.endsWith(".ipynb")) {
      return [report];
    }
    const place = this.#placeOfFiles();
    const found = new Map<string, Report & { items: Problem[] }>();
    const rest: Problem[] = [];
    for (const problem of report.items as Problem[]) {
      const cell = problem.data?.cell;
      if (typeof cell !== "number") {
        rest.push(problem);
      } else if (!place) {
        problem.message = `cell ${cell + 1} line ${problem.range.start.line + 1}: ${problem.message}`;
        problem.range = new Range(0, 0, 0, 0);
        rest.push(problem);
      } else {
        const uri = Uri.from(nameOfCell(report.uri, cell, place));
        const known = found.get(uri.toString());
        found.set(uri.toString(), { kind: report.kind, uri, version: null, items: [...(known?.items ?? []), problem] });
      }
    }
    const notebook = report.uri.toString();
    const gone = (this.#cells.get(notebook) ?? []).filter((uri) => !found.has(uri.toString()));
    this.#cells.set(
      notebook,
      [...found.values()].map(({ uri }) => uri),
    );
    this.#names = new Set([...this.#cells.values()].flat().map(String));
    return [
      { ...report, items: rest },
      ...found.values(),
      ...gone.map((uri): Report => ({ kind: report.kind, uri, version: null, items: [] })),
    ];
  }

  /** Looks at the notebooks that are open. */
  learn(): void {
    this.#placeOfFiles();
  }

  /** Of a remote only the names of cells tell: undefined until a notebook was opened. */
  #placeOfFiles(): Place | undefined {
    if (env.remoteName === undefined) {
      return { scheme: "file", authority: "" };
    }
    for (const notebook of workspace.notebookDocuments) {
      for (const cell of notebook.getCells()) {
        this.#remote ??= placeOf(cell.document.uri);
      }
    }
    return this.#remote;
  }
}
