/** Notebooks: what is asked of a cell is asked of the notebook that it is in. */

import { type NotebookDocument, type Uri, window, workspace } from "vscode";

/** What the button in a notebook's toolbar hands to its command. */
export interface FromToolbar {
  readonly notebookEditor: { readonly notebookUri: Uri };
}

/** The file that a command is about: the one it names, or else the one that is being edited. */
export function fileOf(given: Uri | FromToolbar | undefined): Uri | undefined {
  if (given && "notebookEditor" in given) {
    return given.notebookEditor.notebookUri;
  }
  const uri = given ?? window.activeTextEditor?.document.uri ?? window.activeNotebookEditor?.notebook.uri;
  return (uri && notebookAround(uri)?.uri) ?? uri;
}

/** The open notebook of that name, or the one with that cell. */
export function notebookAround(uri: Uri): NotebookDocument | undefined {
  const name = uri.toString();
  return workspace.notebookDocuments.find(
    (notebook) =>
      notebook.uri.toString() === name || notebook.getCells().some((cell) => cell.document.uri.toString() === name),
  );
}
