/**
 * Finds Pythons: which interpreters may run the server, in order, and whether one of them can.
 *
 * The first thing that happens to an interpreter is that it is run, so the question whether it
 * may be comes before: in a workspace that is not trusted, none that lies inside of it.
 */

import { execFile } from "node:child_process";
import * as fs from "node:fs/promises";
import * as path from "node:path";

/** What the server and the analyzers need; the bundled libraries are pure Python and bring the rest. */
export const OLDEST: readonly [number, number] = [3, 10];

/** An interpreter to try. */
interface Candidate {
  readonly command: string;
  readonly args: readonly string[];
}

/** An interpreter that has answered. */
export interface Python {
  readonly executable: string;
  readonly version: readonly [number, number];
}

/** What this machine offers: its kind, the search path, and folders whose programs must not run. */
export interface Surroundings {
  readonly platform: NodeJS.Platform;
  readonly searchPath: string;
  readonly untrustedFolders: readonly string[];
}

/** No interpreter can run the server. Its message is a sentence to show. */
export class NoPython extends Error {}

/**
 * The interpreter to run the server on: the one in the settings or none, otherwise the Python
 * extension's choice, otherwise the first on PATH that is new enough.
 */
export async function findServerPython(
  configured: string | undefined,
  chosen: string | undefined,
  surroundings: Surroundings,
): Promise<Python> {
  const rejected: string[] = [];
  for await (const candidate of candidates(configured, chosen, surroundings)) {
    const outcome = await tryPython(candidate, surroundings);
    if (typeof outcome !== "string") {
      return outcome;
    }
    if (configured) {
      throw new NoPython(
        `The setting rooflint.serverPython names ${configured}, which ${outcome}: name a Python ${OLDEST.join(".")} or newer.`,
      );
    }
    rejected.push(`${candidate.command} ${outcome}`);
  }
  const tried = rejected.length > 0 ? ` (${rejected.slice(0, 3).join("; ")})` : "";
  throw new NoPython(
    `rooflint found no Python ${OLDEST.join(".")} or newer to run on${tried}: install one, or name one in the setting rooflint.serverPython.`,
  );
}

async function* candidates(
  configured: string | undefined,
  chosen: string | undefined,
  surroundings: Surroundings,
): AsyncGenerator<Candidate> {
  if (configured) {
    const command = isBareName(configured, surroundings.platform)
      ? ((await searchPath([configured], surroundings).next()).value ?? configured)
      : configured;
    yield { command, args: [] };
    return;
  }
  if (chosen) {
    yield { command: chosen, args: [] };
  }
  for await (const command of searchPath(pythonNames(surroundings.platform), surroundings)) {
    yield { command, args: [] };
  }
  if (surroundings.platform === "win32") {
    for await (const command of searchPath(["py"], surroundings)) {
      yield { command, args: ["-3"] };
    }
  }
}

/** The names that a Python goes by, the likeliest first. */
export function pythonNames(platform: NodeJS.Platform): readonly string[] {
  if (platform === "win32") {
    return ["python", "python3"];
  }
  return ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];
}

/** Files of these names in the folders of PATH, name by name. Relative folders are left out: they depend on where one stands. */
export async function* searchPath(
  names: readonly string[],
  { platform, searchPath }: Pick<Surroundings, "platform" | "searchPath">,
): AsyncGenerator<string, undefined> {
  const paths = pathsOf(platform);
  const folders = searchPath.split(paths.delimiter).map((folder) => folder.replace(/^"(.*)"$/, "$1"));
  const seen = new Set<string>();
  for (const name of names) {
    for (const folder of folders.filter((each) => paths.isAbsolute(each))) {
      const file = paths.join(folder, platform === "win32" && !/\.exe$/i.test(name) ? `${name}.exe` : name);
      if (!seen.has(file) && (await isFile(file))) {
        seen.add(file);
        yield file;
      }
    }
  }
  return undefined;
}

/** Whether a setting names a program to look up on PATH, not a file. */
export function isBareName(command: string, platform: NodeJS.Platform): boolean {
  return pathsOf(platform).basename(command) === command;
}

/** The interpreter's answer, or why it will not do ("is Python 3.9"). */
async function tryPython(candidate: Candidate, surroundings: Surroundings): Promise<Python | string> {
  const { platform, untrustedFolders } = surroundings;
  const outside = "lies inside this workspace, which is not trusted";
  if (!pathsOf(platform).isAbsolute(candidate.command)) {
    return "was not found on PATH";
  }
  if (await leadsInto(candidate.command, untrustedFolders, platform)) {
    return outside;
  }
  const answer = await ask(candidate);
  if (typeof answer === "string") {
    return answer;
  }
  if (await leadsInto(answer.executable, untrustedFolders, platform)) {
    return outside;
  }
  return isNewEnough(answer.version) ? answer : `is Python ${answer.version.join(".")}`;
}

const QUESTION = "import json, sys; print(json.dumps([sys.version_info[0], sys.version_info[1], sys.executable]))";

/** Asks an interpreter for its version. Isolated (-I): neither PYTHONPATH nor the folder it starts in can bring code. */
function ask(candidate: Candidate): Promise<Python | string> {
  return new Promise((resolve) => {
    execFile(
      candidate.command,
      [...candidate.args, "-I", "-c", QUESTION],
      { timeout: 10_000, windowsHide: true, cwd: path.dirname(candidate.command) },
      (error, stdout) => {
        const answer = parseAnswer(stdout);
        if (answer) {
          resolve(answer);
        } else if (error?.killed) {
          resolve("did not answer within 10 seconds");
        } else {
          resolve(error?.code === "ENOENT" ? "does not exist" : "does not run as a Python");
        }
      },
    );
  });
}

/** Reads the answer; what a chatty sitecustomize prints before it is passed over. */
export function parseAnswer(stdout: string): Python | undefined {
  for (const line of stdout.trimEnd().split(/\r?\n/).reverse()) {
    try {
      const [major, minor, executable] = JSON.parse(line) as [unknown, unknown, unknown];
      if (typeof major === "number" && typeof minor === "number" && typeof executable === "string" && executable) {
        return { executable, version: [major, minor] };
      }
    } catch {
      // Not our line.
    }
  }
  return undefined;
}

export function isNewEnough([major, minor]: readonly [number, number]): boolean {
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

/**
 * Whether a program is, or is a link that leads through, a file in one of these folders.
 *
 * The Python of a virtual environment is a link to one outside, and still runs what lies beside
 * it; so every station of the way counts, not only the last one.
 */
export async function leadsInto(file: string, folders: readonly string[], platform: NodeJS.Platform): Promise<boolean> {
  const real = await Promise.all(folders.map((folder) => fs.realpath(folder).catch(() => folder)));
  const forbidden = [...folders, ...real];
  const paths = pathsOf(platform);
  let station = file;
  for (let hops = 0; hops < 40; hops++) {
    const folder = await fs.realpath(paths.dirname(station)).catch(() => paths.dirname(station));
    const resolved = paths.join(folder, paths.basename(station));
    if (forbidden.some((each) => isInside(station, each, platform) || isInside(resolved, each, platform))) {
      return true;
    }
    const target = await fs.readlink(resolved).catch(() => undefined);
    if (target === undefined) {
      return false;
    }
    station = paths.resolve(folder, target);
  }
  return true; // A circle of links: nothing to trust.
}

/** Whether a path lies in a folder, by its name alone; letter case counts only on Linux and its kin. */
export function isInside(file: string, folder: string, platform: NodeJS.Platform): boolean {
  const paths = pathsOf(platform);
  const fold = (text: string) => (platform === "darwin" ? text.toLowerCase() : text);
  const relative = paths.relative(fold(folder), fold(file));
  return relative === "" || !(relative === ".." || relative.startsWith(`..${paths.sep}`) || paths.isAbsolute(relative));
}

export function pathsOf(platform: NodeJS.Platform): path.PlatformPath {
  return platform === "win32" ? path.win32 : path.posix;
}

async function isFile(file: string): Promise<boolean> {
  // Not stat: the Python of Windows' store is a link of a kind that stat cannot follow.
  const stats = await fs.lstat(file).catch(() => undefined);
  return stats !== undefined && !stats.isDirectory();
}
