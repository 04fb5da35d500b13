import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type LaunchConfiguration, type Way, wayOf } from "../src/launch";

const FILE = "/work/jobs/train.py";

function of(configuration: LaunchConfiguration, file = FILE): Way | undefined {
  const surroundings = { folder: "/work", variables: { DATA: "/data" }, home: "/home/me" };
  const way = wayOf({ type: "debugpy", request: "launch", name: "it", ...configuration }, file, surroundings);
  // Without what it leaves open.
  return way && JSON.parse(JSON.stringify(way));
}

describe("a launch configuration", () => {
  it("tells how a file is run", () => {
    assert.deepEqual(
      of({
        program: "${workspaceFolder}/jobs/train.py",
        python: "~/torch/bin/python",
        args: ["--data", "${env:DATA}", 3],
        cwd: "${fileDirname}",
        env: { NAME: "${fileBasenameNoExtension}", THREADS: 4, UNSET: null },
        envFile: "${workspaceFolder}/gpu.env",
      }),
      {
        args: ["--data", "/data", "3"],
        cwd: "/work/jobs",
        env: { NAME: "train", THREADS: "4" },
        envFile: "/work/gpu.env",
        python: "/home/me/torch/bin/python",
      },
    );
    assert.deepEqual(of({ program: "${file}", args: '--name "two words"' }), { args: ["--name", "two words"] });
    assert.deepEqual(of({ program: "${relativeFile}", python: "${command:python.interpreterPath}" }), { args: [] });
  });
  it("may name it as a module, from its folder on", () => {
    assert.deepEqual(of({ module: "jobs.train", args: ["1"] }), { args: ["1"], module: "jobs.train" });
    assert.deepEqual(of({ module: "train", cwd: "/work/jobs" }), { args: [], cwd: "/work/jobs", module: "train" });
    assert.deepEqual(of({ module: "jobs" }, "/work/jobs/__main__.py"), { args: [], module: "jobs" });
  });
  it("may start it by a launcher", () => {
    assert.deepEqual(
      of({ module: "torch.distributed.run", args: ["--nproc-per-node", "2", "jobs/train.py", "--lr", "1"] }),
      {
        args: ["--lr", "1"],
        launcher: ["python", "-m", "torch.distributed.run", "--nproc-per-node", "2"],
      },
    );
    assert.deepEqual(of({ program: "/venv/bin/torchrun", args: ["${file}"] }), {
      args: [],
      launcher: ["/venv/bin/torchrun"],
    });
  });
  it("says nothing of another file, of what is attached to, or of what only a debugger can ask", () => {
    assert.equal(of({ program: "${workspaceFolder}/train.py" }), undefined);
    assert.equal(of({ module: "train" }), undefined);
    assert.equal(of({ program: "${file}", request: "attach" }), undefined);
    assert.equal(of({ program: "${file}", type: "node" }), undefined);
    assert.equal(of({ program: "${file}", args: "${command:pickArgs}" }), undefined);
    assert.equal(of({}), undefined);
  });
});
