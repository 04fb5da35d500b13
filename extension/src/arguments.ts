/** How a file is run: its arguments as they were last time, as a launch configuration has them, or as typed. */

import * as os from "node:os";
import * as path from "node:path";
import { type Memento, type QuickPickItem, type Uri, window, workspace } from "vscode";
import { type LaunchConfiguration, type Way, wayOf } from "./launch";
import { settingsFor } from "./settings";
import { joinWords, splitWords } from "./words";

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
    return all.filter(({ from: _, ...way }) => {
      const key = JSON.stringify(
        Object.entries(way)
          .filter(([, value]) => value !== undefined)
          .sort(),
      );
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
    label: labelOf(way),
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
    return chosen?.way;
  }
  const line = await window.showInputBox({
    title: `Profile ${name}`,
    prompt: "Arguments for the script, as in a terminal",
    value: joinWords(known[0]?.args ?? []),
  });
  return line === undefined ? undefined : { ...known[0], args: splitWords(line) };
}

/** What of a way can be told at a glance: what it is started by, and the arguments. */
function labelOf({ args, launcher, module }: Way): string {
  const start = launcher ? `${joinWords(launcher)} … ` : module ? `-m ${module} ` : "";
  return `${start}${joinWords(args)}`.trimEnd() || "No arguments";
}

/** The launch configurations that run this very file. */
function launchConfigurations(file: Uri): KnownWay[] {
  const folder = workspace.getWorkspaceFolder(file)?.uri.fsPath ?? path.dirname(file.fsPath);
  const all = workspace.getConfiguration("launch", file).get<LaunchConfiguration[]>("configurations", []);
  return all.flatMap((each) => {
    const way = wayOf(each, file.fsPath, { folder, variables: process.env, home: os.homedir() });
    return way ? [{ ...way, from: `launch.json: ${each.name}` }] : [];
  });
}

function memoryKey(file: Uri): string {
  return `arguments of ${file.toString()}`;
}
