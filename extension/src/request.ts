/** What to run: which interpreter, where, and with which variables; so that the server only runs it. */

import * as fs from "node:fs/promises";
import * as path from "node:path";
import { Uri, workspace } from "vscode";
import { activate, parseEnvFile, type Variables, withoutEditorVariables } from "./environment";
import type { Way } from "./launch";
import { isBareName, pythonNames, searchPath } from "./python";
import { environmentVariables, selectedInterpreter } from "./pythonExtension";
import { type Settings, settingsFor } from "./settings";

/** Something that the user can mend; its message is a sentence to show. */
export class Refusal extends Error {}

/** What the server's command takes. It runs the file from `cwd` with exactly these variables. */
export interface ProfileArguments {
  readonly uri: string;
  readonly python: string;
  readonly args: readonly string[];
  readonly launcher: readonly string[];
  readonly cwd: string;
  readonly env: Variables;
  /** The file is run by this name. */
  readonly module?: string;
}

export interface ProfileRequest {
  readonly arguments: ProfileArguments;
  /** What had to be left out, a sentence each. */
  readonly notes: readonly string[];
}

/** The request to profile a file in one way, with the settings of its folder. */
export async function prepareRequest(uri: Uri, way: Way): Promise<ProfileRequest> {
  const of = settingsFor(uri);
  const settings = { ...of, python: way.python ?? of.python, envFile: way.envFile ?? of.envFile };
  const python = await interpreterFor(uri, settings);
  const known = way.envFile ? undefined : await environmentVariables(uri);
  const given = known ?? { ...process.env, ...(await readEnvFile(settings.envFile)) };
  const { variables, note } = await activate(python, withoutEditorVariables(given), process.platform);
  return {
    arguments: {
      uri: uri.toString(),
      python,
      args: way.args,
      launcher: way.launcher ?? settings.profileLauncher,
      cwd: way.cwd ?? workspace.getWorkspaceFolder(uri)?.uri.fsPath ?? path.dirname(uri.fsPath),
      env: { ...variables, ...way.env },
      ...(way.module ? { module: way.module } : {}),
    },
    notes: note ? [note] : [],
  };
}

/** The request as one would type it. */
export function commandLine({ arguments: { uri, python, args, launcher, cwd, module } }: ProfileRequest): string {
  const program = launcher.length > 0 ? launcher : [python];
  const words = [...program, ...(module ? ["-m", module] : [Uri.parse(uri).fsPath]), ...args];
  return `${cwd}> ${words.map((word) => (/^\S+$/.test(word) ? word : `"${word}"`)).join(" ")}`;
}

/** The interpreter to profile with: the setting's, the Python extension's for this file, or PATH's. */
async function interpreterFor(uri: Uri, settings: Settings): Promise<string> {
  if (settings.python && !isBareName(settings.python, process.platform)) {
    const folder = workspace.getWorkspaceFolder(uri)?.uri ?? Uri.file(path.dirname(uri.fsPath));
    return path.resolve(folder.fsPath, settings.python);
  }
  const selected = settings.python ? undefined : await selectedInterpreter(uri);
  if (selected) {
    return selected;
  }
  const names = settings.python ? [settings.python] : pythonNames(process.platform);
  const surroundings = { platform: process.platform, searchPath: process.env["PATH"] ?? "" };
  const found = (await searchPath(names, surroundings).next()).value;
  if (found) {
    return found;
  }
  throw new Refusal(
    settings.python
      ? `The setting rooflint.python names ${settings.python}, which is not on PATH: name an interpreter that has torch.`
      : "No Python was found to run the file with: select an interpreter, or name one in the setting rooflint.python.",
  );
}

async function readEnvFile(file: string | undefined): Promise<Variables> {
  const text = file ? await fs.readFile(file, "utf8").catch(() => "") : "";
  return parseEnvFile(text, withoutEditorVariables(process.env));
}
