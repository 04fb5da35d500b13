/** What launch configurations of Python say of how a file is run; those that are about other files say nothing. */

import * as path from "node:path";
import { fillIn } from "./placeholders";
import { splitWords } from "./words";

/** What is particular to one way of running a file. */
export interface Way {
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** A file of more variables. */
  readonly envFile?: string | undefined;
  /** Its own interpreter. */
  readonly python?: string | undefined;
  /** The file is run by this name, as with `python -m`. */
  readonly module?: string | undefined;
  /** What stands before the file: torchrun and its options. */
  readonly launcher?: readonly string[] | undefined;
}

export interface LaunchConfiguration {
  readonly type?: unknown;
  readonly request?: unknown;
  readonly name?: unknown;
  readonly program?: unknown;
  readonly module?: unknown;
  readonly python?: unknown;
  readonly args?: unknown;
  readonly cwd?: unknown;
  readonly env?: unknown;
  readonly envFile?: unknown;
}

export interface Surroundings {
  /** The file's workspace folder. */
  readonly folder: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** How the configuration runs this very file; undefined: it runs another, or asks for what only it knows. */
export function wayOf(given: LaunchConfiguration, file: string, surroundings: Surroundings): Way | undefined {
  const { folder } = surroundings;
  const fill = (text: string) =>
    fillInFile(fillIn(text, folder, surroundings.variables, surroundings.home), file, folder);
  const text = (value: unknown) => (typeof value === "string" && value ? fill(value) : undefined);
  if ((given.type !== "debugpy" && given.type !== "python") || given.request !== "launch") {
    return undefined;
  }
  const words = typeof given.args === "string" ? splitWords(given.args) : Array.isArray(given.args) ? given.args : [];
  const args = words.map(String).map(fill);
  const cwd = text(given.cwd);
  const python = text(Array.isArray(given.python) ? given.python[0] : given.python);
  const isFile = (word: string) => path.resolve(cwd ?? folder, word) === file;
  const [program, module] = [text(given.program), text(given.module)];
  const place = args.findIndex(isFile);
  const rest: Way = {
    args,
    cwd,
    env: stringsOf(given.env, fill),
    envFile: text(given.envFile),
    // The interpreter that is selected is asked for in any case.
    python: python?.includes("${") ? undefined : python,
  };
  const way =
    program && path.resolve(folder, program) === file
      ? rest
      : module && filesOf(module).some(isFile)
        ? { ...rest, module }
        : place >= 0 && (program || module)
          ? { ...rest, launcher: [...before(program, module), ...args.slice(0, place)], args: args.slice(place + 1) }
          : undefined;
  return JSON.stringify(way ?? "").includes("${") ? undefined : way;
}

/** What starts the file, where a configuration names a launcher: `python` stands for the script's own. */
function before(program: string | undefined, module: string | undefined): string[] {
  return program ? [program] : ["python", "-m", module ?? ""];
}

/** The files that `python -m` may run by this name. */
function filesOf(module: string): string[] {
  const inside = module.split(".").join(path.sep);
  return [`${inside}.py`, path.join(inside, "__main__.py")];
}

function fillInFile(text: string, file: string, folder: string): string {
  const { base, name, dir, ext } = path.parse(file);
  const known: Readonly<Record<string, string>> = {
    file,
    fileBasename: base,
    fileBasenameNoExtension: name,
    fileDirname: dir,
    fileExtname: ext,
    relativeFile: path.relative(folder, file),
    relativeFileDirname: path.relative(folder, dir) || ".",
    workspaceFolderBasename: path.basename(folder),
    pathSeparator: path.sep,
    "/": path.sep,
  };
  return text.replace(/\$\{([\w/]+)\}/g, (whole, key: string) => known[key] ?? whole);
}

function stringsOf(value: unknown, fill: (text: string) => string): Record<string, string> | undefined {
  if (typeof value !== "object" || value === null) {
    return undefined;
  }
  const known = Object.entries(value).filter(([, each]) => each !== null && each !== undefined);
  return Object.fromEntries(known.map(([name, each]) => [name, fill(String(each))]));
}
