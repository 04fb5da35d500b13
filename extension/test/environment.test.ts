import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import { after, before, describe, it } from "node:test";
import { activate, parseDump, parseEnvFile, prependPath, withoutEditorVariables } from "../src/environment";

let home: string;

before(async () => {
  home = await fs.mkdtemp(path.join(os.tmpdir(), "rooflint-environment-"));
});

after(() => fs.rm(home, { recursive: true, force: true }));

describe("an activated environment", () => {
  it("of a venv has its programs first on PATH, and no PYTHONHOME", async () => {
    const venv = path.join(home, "venv");
    await fs.mkdir(path.join(venv, "bin"), { recursive: true });
    await fs.writeFile(path.join(venv, "pyvenv.cfg"), "");
    const python = path.join(venv, "bin", "python");
    assert.deepEqual(await activate(python, { PATH: "/usr/bin", PYTHONHOME: "/opt", LANG: "C" }, "linux"), {
      variables: { PATH: `${venv}/bin:/usr/bin`, VIRTUAL_ENV: venv, LANG: "C" },
    });
  });
  it("of a plain interpreter is what was there", async () => {
    const variables = { PATH: "/usr/bin" };
    assert.deepEqual(await activate(path.join(home, "plain", "bin", "python"), variables, "linux"), { variables });
  });
  it("of conda is what conda makes of it", async () => {
    const prefix = await condaEnvironment("root");
    const conda = path.join(home, "root", "bin", "conda");
    await fs.mkdir(path.dirname(conda), { recursive: true });
    const script =
      '#!/bin/sh\necho "activating"\necho "{\\"CONDA_PREFIX\\": \\"$3\\", \\"ASKED\\": \\"$1 $2\\", \\"KEPT\\": \\"$KEPT\\"}"\n';
    await fs.writeFile(conda, script);
    await fs.chmod(conda, 0o755);
    assert.deepEqual(await activate(path.join(prefix, "bin/python"), { PATH: "/usr/bin:/bin", KEPT: "yes" }, "linux"), {
      variables: { CONDA_PREFIX: prefix, ASKED: "run -p", KEPT: "yes" },
    });
  });
  it("of conda without a conda that runs has its PATH, and says what is missing", async () => {
    const prefix = await condaEnvironment("elsewhere");
    const { variables, note } = await activate(path.join(prefix, "bin/python"), { PATH: "/nowhere" }, "linux");
    assert.deepEqual(variables, { PATH: `${prefix}/bin:/nowhere`, CONDA_PREFIX: prefix, CONDA_DEFAULT_ENV: "torch" });
    assert.match(note ?? "", /conda could not be run/);
  });

  async function condaEnvironment(root: string): Promise<string> {
    const prefix = path.join(home, root, "envs", "torch");
    await fs.mkdir(path.join(prefix, "conda-meta"), { recursive: true });
    await fs.mkdir(path.join(prefix, "bin"));
    return prefix;
  }
});

describe("PATH on Windows", () => {
  it("keeps the name that it goes by", () => {
    assert.deepEqual(prependPath({ Path: "C:\\Windows" }, ["C:\\venv\\Scripts"], "win32"), {
      Path: "C:\\venv\\Scripts;C:\\Windows",
    });
  });
});

describe("an env file", () => {
  it("has names, quotes, comments and names of others", () => {
    const text = [
      "# what the project needs",
      "DATA=/data/tokens",
      "export CUDA_VISIBLE_DEVICES=0",
      'NAME="two words" # a comment',
      "RAW='${DATA}'",
      "CACHE=${DATA}/cache   # another",
      "HOME_CACHE=${HOME}/.cache",
      "COLOR=#fff",
      "EMPTY=",
      "NOTHING= # yet",
      "not a line of it",
    ].join("\r\n");
    assert.deepEqual(parseEnvFile(text, { HOME: "/root" }), {
      DATA: "/data/tokens",
      CUDA_VISIBLE_DEVICES: "0",
      NAME: "two words",
      RAW: "${DATA}",
      CACHE: "/data/tokens/cache",
      HOME_CACHE: "/root/.cache",
      COLOR: "#fff",
      EMPTY: "",
      NOTHING: "",
    });
  });
});

describe("variables", () => {
  it("of the editor's own processes are not the script's", () => {
    assert.deepEqual(
      withoutEditorVariables({ PATH: "/bin", VSCODE_IPC_HOOK: "x", ELECTRON_RUN_AS_NODE: "1", GONE: undefined }),
      { PATH: "/bin" },
    );
  });
  it("are read from the last line that holds them", () => {
    assert.deepEqual(parseDump('welcome\n{"PATH": "/bin"}\n'), { PATH: "/bin" });
    assert.equal(parseDump("no environment\n"), undefined);
  });
});
