import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import { after, before, describe, it } from "node:test";
import {
  findServerPython,
  isBareName,
  isInside,
  isNewEnough,
  leadsInto,
  NoPython,
  parseAnswer,
  pythonNames,
  type Surroundings,
  searchPath,
} from "../src/python";

let home: string;

before(async () => {
  home = await fs.realpath(await fs.mkdtemp(path.join(os.tmpdir(), "rooflint-python-")));
});

after(() => fs.rm(home, { recursive: true, force: true }));

describe("an interpreter's answer", () => {
  it("is its version and where it lies", () => {
    assert.deepEqual(parseAnswer('[3, 12, "/usr/bin/python3.12"]\n'), {
      executable: "/usr/bin/python3.12",
      version: [3, 12],
    });
  });
  it("is found behind what a sitecustomize prints, and with Windows' line ends", () => {
    assert.deepEqual(parseAnswer('hello\r\n[3, 10, "C:\\\\Python310\\\\python.exe"]\r\n')?.version, [3, 10]);
  });
  it("is none if it is not ours", () => {
    for (const text of ["", "Python 3.12.1", "[3, 12]", '["3", "12", "python"]', '[3, 12, ""]', "null"]) {
      assert.equal(parseAnswer(text), undefined, text);
    }
  });
  it("is new enough from 3.10 on", () => {
    assert.deepEqual(
      (
        [
          [2, 7],
          [3, 9],
          [3, 10],
          [3, 14],
          [4, 0],
        ] as const
      ).map((version) => isNewEnough(version)),
      [false, false, true, true, true],
    );
  });
});

describe("a path inside a folder", () => {
  it("is told by whole names", () => {
    assert.ok(isInside("/home/me/project/.venv/bin/python", "/home/me/project", "linux"));
    assert.ok(isInside("/home/me/project", "/home/me/project/", "linux"));
    assert.ok(isInside("/home/me/project/..python/bin/python", "/home/me/project", "linux"));
    assert.ok(!isInside("/home/me/project2/bin/python", "/home/me/project", "linux"));
    assert.ok(!isInside("/home/me/project/../bin/python", "/home/me/project", "linux"));
  });
  it("on Windows may differ in letter case, and never lies on another drive", () => {
    assert.ok(isInside("c:\\Work\\Project\\.venv\\Scripts\\python.exe", "C:\\work\\project", "win32"));
    assert.ok(isInside("C:/work/project/python.exe", "C:\\work\\project", "win32"));
    assert.ok(!isInside("D:\\work\\project\\python.exe", "C:\\work\\project", "win32"));
    assert.ok(!isInside("\\\\server\\share\\python.exe", "C:\\work\\project", "win32"));
  });
  it("differs by letter case on Linux, not on a Mac", () => {
    assert.ok(!isInside("/Work/Project/python", "/work/project", "linux"));
    assert.ok(isInside("/Work/Project/python", "/work/project", "darwin"));
  });
});

describe("a link", () => {
  it("leads into a folder if any station of its way lies there", async () => {
    const workspace = path.join(home, "workspace");
    const outside = path.join(home, "outside");
    await fs.mkdir(path.join(workspace, ".venv", "bin"), { recursive: true });
    await fs.mkdir(outside);
    await fs.writeFile(path.join(outside, "real"), "");
    await fs.symlink(path.join(outside, "real"), path.join(workspace, ".venv", "bin", "python"));
    await fs.symlink("../workspace/.venv/bin/python", path.join(outside, "through"));
    await fs.symlink(path.join(workspace, ".venv"), path.join(outside, "venv"));
    await fs.symlink("real", path.join(outside, "beside"));
    await fs.symlink("circle", path.join(outside, "circle"));
    const leads = (file: string) => leadsInto(path.join(home, file), [workspace], "linux");
    assert.ok(await leads("workspace/.venv/bin/python"));
    assert.ok(await leads("outside/through"));
    assert.ok(await leads("outside/venv/bin/python"));
    assert.ok(await leads("outside/circle"));
    assert.ok(!(await leads("outside/beside")));
    assert.ok(!(await leads("outside/missing")));
  });
  it("to the workspace itself does not hide it", async () => {
    await fs.mkdir(path.join(home, "disk", "code", "bin"), { recursive: true });
    await fs.symlink(path.join(home, "disk", "code"), path.join(home, "code"));
    await fs.writeFile(path.join(home, "disk", "code", "bin", "python"), "");
    assert.ok(await leadsInto(path.join(home, "disk/code/bin/python"), [path.join(home, "code")], "linux"));
    assert.ok(await leadsInto(path.join(home, "code/bin/python"), [path.join(home, "disk/code")], "linux"));
  });
});

describe("PATH", () => {
  it("is searched name by name, without folders that depend on where one stands", async () => {
    for (const name of ["a/python", "b/python3", "c/python3.12"]) {
      await fs.mkdir(path.dirname(path.join(home, name)), { recursive: true });
      await fs.writeFile(path.join(home, name), "");
    }
    await fs.mkdir(path.join(home, "d", "python3"), { recursive: true }); // a folder, not a program
    const folders = ["", ".", "bin", ...["a", "b", "c", "d", "b"].map((each) => path.join(home, each))];
    const found = [];
    for await (const file of searchPath(pythonNames("linux"), { platform: "linux", searchPath: folders.join(":") })) {
      found.push(path.relative(home, file));
    }
    assert.deepEqual(found, ["b/python3", "a/python", "c/python3.12"]);
  });
  it("is where a bare name is looked up", () => {
    assert.ok(isBareName("python3.12", "linux"));
    assert.ok(isBareName("py.exe", "win32"));
    assert.ok(!isBareName("./python3", "linux"));
    assert.ok(!isBareName("Scripts\\python.exe", "win32"));
  });
});

describe("the server's Python", () => {
  let old: string;
  let recent: string;
  let recorded: string;

  /** A program that answers as a Python of some version would, and notes that it was run. */
  async function fakePython(file: string, version: readonly [number, number]): Promise<string> {
    await fs.mkdir(path.dirname(file), { recursive: true });
    await fs.writeFile(file, `#!/bin/sh\necho "$0 $1" >> ${recorded}\necho '[${version.join(", ")}, "${file}"]'\n`);
    await fs.chmod(file, 0o755);
    return file;
  }
  const surroundings = (folders: string[], untrustedFolders: string[] = []): Surroundings => ({
    platform: "linux",
    searchPath: folders.map((each) => path.join(home, "server", each)).join(":"),
    untrustedFolders,
  });

  before(async () => {
    recorded = path.join(home, "recorded");
    old = await fakePython(path.join(home, "server/old/python3"), [3, 9]);
    recent = await fakePython(path.join(home, "server/recent/python3"), [3, 11]);
  });

  it("is the setting's before the Python extension's before PATH's", async () => {
    const chosen = await fakePython(path.join(home, "server/chosen/python"), [3, 12]);
    const set = await fakePython(path.join(home, "server/set/python"), [3, 13]);
    const path_ = surroundings(["recent"]);
    assert.equal((await findServerPython(set, chosen, path_)).executable, set);
    assert.equal((await findServerPython(undefined, chosen, path_)).executable, chosen);
    assert.equal((await findServerPython(undefined, undefined, path_)).executable, recent);
  });
  it("is asked in isolation", async () => {
    await fs.writeFile(recorded, "");
    await findServerPython(recent, undefined, surroundings([]));
    assert.equal(await fs.readFile(recorded, "utf8"), `${recent} -I\n`);
  });
  it("is looked for further where one is too old", async () => {
    assert.equal((await findServerPython(undefined, old, surroundings(["old", "recent"]))).executable, recent);
  });
  it("is the one that the setting names or none", async () => {
    await assert.rejects(
      findServerPython(old, undefined, surroundings(["recent"])),
      new NoPython(`The setting rooflint.serverPython names ${old}, which is Python 3.9: name a Python 3.10 or newer.`),
    );
    await assert.rejects(
      findServerPython("python7", undefined, surroundings(["recent"])),
      new NoPython(
        "The setting rooflint.serverPython names python7, which was not found on PATH: name a Python 3.10 or newer.",
      ),
    );
    await assert.rejects(
      findServerPython(path.join(home, "nowhere"), undefined, surroundings([])),
      /nowhere, which does not exist: name/,
    );
  });
  it("if there is none, is missed in a sentence that says what was tried", async () => {
    await assert.rejects(
      findServerPython(undefined, undefined, surroundings(["old"])),
      new NoPython(
        `rooflint found no Python 3.10 or newer to run on (${old} is Python 3.9): install one, or name one in the setting rooflint.serverPython.`,
      ),
    );
    await assert.rejects(
      findServerPython(undefined, undefined, surroundings([])),
      new NoPython(
        "rooflint found no Python 3.10 or newer to run on: install one, or name one in the setting rooflint.serverPython.",
      ),
    );
  });
  it("in an untrusted workspace is never one inside it, and such a one is not even asked", async () => {
    const workspace = path.join(home, "server", "workspace");
    const within = await fakePython(path.join(workspace, ".venv/bin/python3"), [3, 12]);
    await fs.writeFile(recorded, "");
    const untrusted = surroundings(["workspace/.venv/bin", "recent"], [workspace]);
    assert.equal((await findServerPython(undefined, within, untrusted)).executable, recent);
    assert.doesNotMatch(await fs.readFile(recorded, "utf8"), /workspace/);
    await assert.rejects(
      findServerPython(within, undefined, untrusted),
      /lies inside this workspace, which is not trusted/,
    );
    const trusted = surroundings(["workspace/.venv/bin"]);
    assert.equal((await findServerPython(undefined, within, trusted)).executable, within);
  });
  it("is not one outside that only passes on to one inside an untrusted workspace", async () => {
    const workspace = path.join(home, "server", "workspace");
    const shim = path.join(home, "server/shim/python3");
    await fs.mkdir(path.dirname(shim));
    await fs.writeFile(shim, `#!/bin/sh\necho '[3, 12, "${workspace}/.venv/bin/python3"]'\n`);
    await fs.chmod(shim, 0o755);
    assert.equal((await findServerPython(undefined, shim, surroundings(["recent"], [workspace]))).executable, recent);
  });
  it("is a real one on this machine", async () => {
    const python = await findServerPython(undefined, undefined, {
      platform: process.platform,
      searchPath: process.env["PATH"] ?? "",
      untrustedFolders: [],
    });
    assert.ok(isNewEnough(python.version));
    assert.ok(path.isAbsolute(python.executable));
  });
});
