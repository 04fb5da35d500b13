/** What VS Code calls the cells of a notebook that is not open: those are made anew, and numbered, when it opens. */

const SCHEME = "vscode-notebook-cell";
/** VS Code's own, so that names of the same length sort by number: workbench/services/notebook/common/notebookDocumentService.ts. */
const BASE = 7;
const LENGTHS = "WXYZabcdef";

/** The part of a `Uri` that names are made of. */
export interface Name {
  readonly scheme: string;
  readonly authority: string;
  readonly path: string;
  readonly fragment: string;
}

/** Where VS Code sees the files of this machine: here, or at a remote that it connects to. */
export interface Place {
  readonly scheme: string;
  readonly authority: string;
}

/** The name of a notebook's cell, counted from 0, prose among them. */
export function nameOfCell(notebook: Pick<Name, "path">, cell: number, { scheme, authority }: Place): Name {
  const digits = cell.toString(BASE);
  const fragment = `${LENGTHS[digits.length - 1] ?? "z"}${digits}s${Buffer.from(scheme).toString("base64url")}`;
  return { scheme: SCHEME, authority, path: notebook.path, fragment: padded(fragment) };
}

/** Where the files are, by the name of a cell; undefined: it is named in another way. */
export function placeOf(cell: Name): Place | undefined {
  const coded = /^[WXYZa-fz]+[0-6]+s(.+)$/.exec(cell.fragment)?.[1];
  return cell.scheme === SCHEME && coded
    ? { scheme: Buffer.from(coded, "base64url").toString(), authority: cell.authority }
    : undefined;
}

function padded(fragment: string): string {
  const coded = fragment.length - fragment.indexOf("s") - 1;
  return fragment + "=".repeat((4 - (coded % 4)) % 4);
}
