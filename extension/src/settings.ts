/** The user's settings, with `${workspaceFolder}`, `${env:NAME}` and `~` filled in. */

import * as os from "node:os";
import { type Uri, workspace } from "vscode";
import { fillIn } from "./placeholders";

export interface Settings {
  /** The interpreter to run the server on; undefined: find one. */
  readonly serverPython: string | undefined;
  /** The interpreter to profile with; undefined: the Python extension's choice. */
  readonly python: string | undefined;
  readonly profileArgs: readonly string[];
  readonly profileLauncher: readonly string[];
  /** A file of variables for the script, as the Python extension's setting names it. */
  readonly envFile: string | undefined;
}

export function settingsFor(resource: Uri | undefined): Settings {
  const folder = (resource && workspace.getWorkspaceFolder(resource)) ?? workspace.workspaceFolders?.[0];
  const fill = (text: string) => fillIn(text, folder?.uri.fsPath, process.env, os.homedir());
  const ours = workspace.getConfiguration("rooflint", resource ?? null);
  const list = (name: string) => ours.get<string[]>(name, []).map(fill);
  const program = (name: string) => fill(ours.get<string>(name, "").trim()) || undefined;
  const envFile = workspace
    .getConfiguration("python", resource ?? null)
    .get<string>("envFile", "${workspaceFolder}/.env");
  return {
    serverPython: program("serverPython"),
    python: program("python"),
    profileArgs: list("profile.args"),
    profileLauncher: list("profile.launcher"),
    envFile: folder || !envFile.includes("${workspaceFolder}") ? fill(envFile) : undefined,
  };
}
