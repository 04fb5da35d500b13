import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nameOfCell, placeOf } from "../src/cellNames";

const HERE = { scheme: "file", authority: "" };
const NOTEBOOK = { path: "/project/train.ipynb" };

describe("a cell of a notebook that is not open", () => {
  it("is called as VS Code will call it", () => {
    const first = { scheme: "vscode-notebook-cell", authority: "", path: NOTEBOOK.path, fragment: "W0sZmlsZQ==" };
    assert.deepEqual(nameOfCell(NOTEBOOK, 0, HERE), first);
    assert.equal(nameOfCell(NOTEBOOK, 6, HERE).fragment, "W6sZmlsZQ==");
    assert.equal(nameOfCell(NOTEBOOK, 7, HERE).fragment, "X10sZmlsZQ==");
    assert.equal(nameOfCell(NOTEBOOK, 60, HERE).fragment, "Y114sZmlsZQ==");
  });
  it("is looked for where other cells are", () => {
    const remote = { scheme: "vscode-remote", authority: "ssh-remote+host" };
    assert.deepEqual(placeOf(nameOfCell(NOTEBOOK, 60, remote)), remote);
    assert.deepEqual(placeOf(nameOfCell(NOTEBOOK, 3, HERE)), HERE);
    assert.equal(placeOf({ ...nameOfCell(NOTEBOOK, 3, HERE), fragment: "ch0000003" }), undefined);
  });
});
