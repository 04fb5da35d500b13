/** How a file is run: its arguments as they were last time, as a launch configuration has them, or as typed. */

import * as path from "node:path";
import { type Memento, type QuickPickItem, type Uri, window, workspace } from "vscode";
import { settingsFor } from "./settings";
import { joinWords, splitWords } from "./words";

/** What is particular to one way of running a file. */
export interface Way {
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

interface KnownWay extends Way {
  /** Where it comes from, for the user. */
  readonly from: string;
}

/** Scripts that look at their command line: where nothing is known of it, the user is asked. */
const READS_ARGUMENTS =
  /\bargparse\b|\bsys\.argv\b|\bimport (click|typer|fire|tyro|hydra)\b|\bfrom (click|typer|tyro)\b/;

export class Ways {
  readonly #memory: Memento;

  constructor(memory: Memento) {
    this.#memory = memory;
  }

  /** How the file was run last time; undefined: it was not yet. */
  last(file: Uri): Way | undefined {
    return this.#memory.get<Way>(memoryKey(file));
  }

  async remember(file: Uri, way: Way): Promise<void> {
    await this.#memory.update(memoryKey(file), way);
  }

  /** The one way that is known; if there are several, or `ask` says so, the user's choice. Undefined: none was made. */
  async choose(file: Uri, ask: boolean): Promise<Way | undefined> {
    const known = this.#known(file);
    const [first] = known;
    if (!ask && first && known.length === 1) {
      return first;
    }
    if (!ask && !first) {
      const text = Buffer.from(await workspace.fs.readFile(file)).toString("utf8");
      if (!READS_ARGUMENTS.test(text)) {
        return { args: [] };
      }
    }
    return pick(file, known);
  }

  #known(file: Uri): KnownWay[] {
    const last = this.last(file);
    const set = settingsFor(file).profileArgs;
    const all: KnownWay[] = [
      ...(last ? [{ ...last, from: "last time" }] : []),
      ...(set.length > 0 ? [{ args: set, from: "setting rooflint.profile.args" }] : []),
      ...launchConfigurations(file),
    ];
    const seen = new Set<string>();
    return all.filter(({ args, cwd, env }) => {
      const key = JSON.stringify([args, cwd, env]);
      return !seen.has(key) && seen.add(key);
    });
  }
}

async function pick(file: Uri, known: readonly KnownWay[]): Promise<Way | undefined> {
  type Item = QuickPickItem & { readonly way?: Way };
  const none: Item[] = known.some(({ args }) => args.length === 0)
    ? []
    : [{ label: "No arguments", way: { args: [] } }];
  const items: Item[] = known.map((way) => ({
    label: joinWords(way.args) || "No arguments",
    description: way.from,
    way,
  }));
  const typed: Item = { label: "$(edit) Type arguments…" };
  const name = path.basename(file.fsPath);
  const chosen = await window.showQuickPick<Item>([...items, ...none, typed], {
    title: `Profile ${name}`,
    placeHolder: "Arguments for the script",
  });
  if (!chosen || chosen.way) {
    return chosen?.way && { args: chosen.way.args, cwd: chosen.way.cwd, env: chosen.way.env };
  }
  const line = await window.showInputBox({
    title: `Profile ${name}`,
    prompt: "Arguments for the script, as in a terminal",
    value: joinWords(known[0]?.args ?? []),
  });
  return line === undefined ? undefined : { ...known[0], args: splitWords(line) };
}

interface LaunchConfiguration {
  readonly type?: unknown;
  readonly request?: unknown;
  readonly name?: unknown;
  readonly program?: unknown;
  readonly args?: unknown;
  readonly cwd?: unknown;
  readonly env?: unknown;
}

/** The launch configurations that run this very file. */
function launchConfigurations(file: Uri): KnownWay[] {
  const folder = workspace.getWorkspaceFolder(file)?.uri.fsPath ?? path.dirname(file.fsPath);
  const fill = (text: string) =>
    text
      .replace(/\$\{workspaceFolder\}/g, () => folder)
      .replace(/\$\{file\}/g, () => file.fsPath)
      .replace(/\$\{fileDirname\}/g, () => path.dirname(file.fsPath))
      .replace(/\$\{fileBasename\}/g, () => path.basename(file.fsPath))
      .replace(/\$\{env:(\w+)\}/g, (_, name: string) => process.env[name] ?? "");
  const all = workspace.getConfiguration("launch", file).get<LaunchConfiguration[]>("configurations", []);
  return all.flatMap(({ type, request, name, program, args, cwd, env }) => {
    const isPython = type === "debugpy" || type === "python";
    const runs = isPython && request === "launch" && typeof program === "string";
    if (!runs || path.resolve(folder, fill(program)) !== file.fsPath) {
      return [];
    }
    const words = typeof args === "string" ? splitWords(args) : Array.isArray(args) ? args.map(String) : [];
    return [
      {
        args: words.map(fill),
        cwd: typeof cwd === "string" ? fill(cwd) : undefined,
        env: isStrings(env)
          ? Object.fromEntries(Object.entries(env).map(([key, value]) => [key, fill(value)]))
          : undefined,
        from: `launch.json: ${name}`,
      },
    ];
  });
}

function isStrings(value: unknown): value is Record<string, string> {
  return typeof value === "object" && value !== null && Object.values(value).every((each) => typeof each === "string");
}

function memoryKey(file: Uri): string {
  return `arguments of ${file.toString()}`;
}
