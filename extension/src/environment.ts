/**
 * The variables of an activated environment: what a terminal would hold after `activate`.
 *
 * They are worked out per run and handed to the server as a value, so that the profiled script
 * meets the PATH, CONDA_PREFIX or LD_LIBRARY_PATH that it is used to.
 */

import { execFile } from "node:child_process";
import * as fs from "node:fs/promises";
import { pathsOf, searchPath } from "./python";

export type Variables = Readonly<Record<string, string>>;

/** Activated variables, and a sentence if something had to be left out. */
export interface Activation {
  readonly variables: Variables;
  readonly note?: string;
}

/** What `activate` of this interpreter's environment, a venv or conda's, would make of these variables. */
export async function activate(python: string, variables: Variables, platform: NodeJS.Platform): Promise<Activation> {
  const paths = pathsOf(platform);
  const bin = paths.dirname(python);
  const prefix = platform === "win32" && paths.basename(bin).toLowerCase() !== "scripts" ? bin : paths.dirname(bin);
  if (await exists(paths.join(prefix, "pyvenv.cfg"))) {
    const { PYTHONHOME: _, ...rest } = variables;
    return { variables: { ...prependPath(rest, [bin], platform), VIRTUAL_ENV: prefix } };
  }
  if (await exists(paths.join(prefix, "conda-meta"))) {
    return activateConda(python, prefix, variables, platform);
  }
  return { variables };
}

const DUMP = "import json,os;print(json.dumps(dict(os.environ)))";

/** Conda environments bring scripts of their own (CUDA's set paths), so conda itself is asked. */
async function activateConda(
  python: string,
  prefix: string,
  variables: Variables,
  platform: NodeJS.Platform,
): Promise<Activation> {
  const conda = await findConda(prefix, variables, platform);
  if (conda) {
    const dumped = await run(conda, ["run", "-p", prefix, python, "-I", "-c", DUMP], variables);
    const activated = dumped && parseDump(dumped);
    if (activated) {
      return { variables: activated };
    }
  }
  const paths = pathsOf(platform);
  const bins =
    platform === "win32"
      ? [prefix, paths.join(prefix, "Library", "bin"), paths.join(prefix, "Scripts")]
      : [paths.join(prefix, "bin")];
  return {
    variables: {
      ...prependPath(variables, bins, platform),
      CONDA_PREFIX: prefix,
      CONDA_DEFAULT_ENV: paths.basename(prefix),
    },
    note: `conda could not be run for ${prefix}, so the environment's own activation scripts were left out.`,
  };
}

async function findConda(prefix: string, variables: Variables, platform: NodeJS.Platform): Promise<string | undefined> {
  const paths = pathsOf(platform);
  const program = platform === "win32" ? ["Scripts", "conda.exe"] : ["bin", "conda"];
  const known = [
    variables["CONDA_EXE"],
    paths.join(prefix, ...program),
    paths.join(prefix, "..", "..", ...program), // root/envs/name
    variables["MAMBA_EXE"],
  ];
  for (const file of known) {
    if (file && (await exists(file))) {
      return file;
    }
  }
  const onPath = searchPath(["conda", "mamba", "micromamba"], {
    platform,
    searchPath: variables[pathName(variables, platform)] ?? "",
  });
  return (await onPath.next()).value;
}

/** The last line that is an object of strings; activation scripts may print before it. */
export function parseDump(stdout: string): Variables | undefined {
  for (const line of stdout.trimEnd().split(/\r?\n/).reverse()) {
    if (line.startsWith("{")) {
      try {
        return JSON.parse(line) as Variables;
      } catch {
        // Not our line.
      }
    }
  }
  return undefined;
}

/** Puts folders in front of PATH, whatever its letter case: Windows says Path. */
export function prependPath(
  variables: Variables,
  folders: readonly string[],
  platform: NodeJS.Platform,
): Record<string, string> {
  const name = pathName(variables, platform);
  const old = variables[name];
  return { ...variables, [name]: [...folders, ...(old ? [old] : [])].join(pathsOf(platform).delimiter) };
}

function pathName(variables: Variables, platform: NodeJS.Platform): string {
  const found = platform === "win32" ? Object.keys(variables).find((name) => name.toUpperCase() === "PATH") : undefined;
  return found ?? "PATH";
}

/**
 * The lines of an env file: `NAME=value`, `export NAME=value`, quotes, comments, and `${NAME}`
 * outside of single quotes.
 */
export function parseEnvFile(text: string, known: Variables): Variables {
  const variables: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const match = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=(.*)$/.exec(line);
    if (!match) {
      continue;
    }
    const [, name = "", written = ""] = match;
    const quoted = /^\s*(["'])(.*?)\1\s*(?:#.*)?$/.exec(written);
    const value = quoted ? (quoted[2] ?? "") : written.replace(/\s#.*$/, "").trim();
    variables[name] =
      quoted?.[1] === "'"
        ? value
        : value.replace(/\$\{(\w+)\}/g, (_, each: string) => variables[each] ?? known[each] ?? "");
  }
  return variables;
}

/** Leaves out what the editor set for its own processes, which no terminal would show a script. */
export function withoutEditorVariables(variables: Readonly<Record<string, string | undefined>>): Variables {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(variables)) {
    if (value !== undefined && !/^(VSCODE_|ELECTRON_)/.test(name)) {
      kept[name] = value;
    }
  }
  return kept;
}

function run(command: string, args: readonly string[], env: Variables): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(command, args, { env, timeout: 30_000, windowsHide: true, maxBuffer: 8 << 20 }, (error, stdout) => {
      resolve(error ? undefined : stdout);
    });
  });
}

async function exists(file: string): Promise<boolean> {
  return fs.access(file).then(
    () => true,
    () => false,
  );
}
