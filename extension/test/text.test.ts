import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fillIn } from "../src/placeholders";
import { plain } from "../src/plain";
import { shorten, whatIsHere } from "../src/summary";
import { joinWords, splitWords } from "../src/words";

describe("the status bar", () => {
  it("has room for the step and how busy the GPU was", () => {
    assert.equal(
      shorten(
        "step 10.5 ms (12.1 ms while recorded) · GPU busy 6.4 ms (61 %) · the GPU waits for launches: overhead-bound",
      ),
      "step 10.5 ms · GPU 61 %",
    );
  });
  it("shows the step alone where no GPU was", () => {
    assert.equal(shorten("step 1,317 ms · 74 % of the operators' time is compute-bound"), "step 1,317 ms");
  });
  it("shows the first part of what it does not know", () => {
    assert.equal(shorten("nothing ran on the GPU · look at line 3"), "nothing ran on the GPU");
    assert.equal(
      shorten("the time is Python's, not torch's: GPU tools are not next"),
      "the time is Python's, not torch's",
    );
  });
});

describe("what an import brought", () => {
  it("is said of one file, of all and of some", () => {
    assert.equal(whatIsHere(0, 0), "");
    assert.equal(whatIsHere(1, 0), "Its file is here. ");
    assert.equal(whatIsHere(3, 0), "All of its 3 files are here. ");
    assert.equal(whatIsHere(1, 2), "1 of its 3 files is here. ");
    assert.equal(whatIsHere(0, 2), "0 of its 2 files are here. ");
  });
});

describe("a notification", () => {
  it("makes no link of what a file or a kernel is called", () => {
    // What VS Code takes for a link in a notification: base/common/linkedText.ts.
    const link = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: (["'])(.+?)(\3))?\)/i;
    for (const name of ["[x](command:y)", "[[x](https://e)", '[x](command:y "title")', "]([x](file:///z)"]) {
      assert.match(name, link);
      assert.doesNotMatch(plain(`${name}.py was profiled`), link);
    }
  });
});

describe("a setting", () => {
  const fill = (text: string, folder?: string) => fillIn(text, folder, { VENVS: "/data/venvs" }, "/home/me");
  it("may name the workspace folder, a variable and the home folder", () => {
    assert.equal(fill("${workspaceFolder}/.venv/bin/python", "/work/$&"), "/work/$&/.venv/bin/python");
    assert.equal(fill("${env:VENVS}/torch${env:UNSET}/bin/python"), "/data/venvs/torch/bin/python");
    assert.equal(fill("~/torch/bin/python"), "/home/me/torch/bin/python");
    assert.equal(fill("~\\torch\\python.exe"), "/home/me\\torch\\python.exe");
  });
  it("keeps what only looks like one", () => {
    assert.equal(fill("/opt/~me/${config:python}"), "/opt/~me/${config:python}");
  });
});

describe("a command line", () => {
  it("is split as a shell would", () => {
    assert.deepEqual(splitWords(`  --lr 1e-3 --name "a b" 'c "d' e\\ f "" `), [
      "--lr",
      "1e-3",
      "--name",
      "a b",
      'c "d',
      "e f",
      "",
    ]);
    assert.deepEqual(splitWords("C:\\data\\x --out D:\\y"), ["C:\\data\\x", "--out", "D:\\y"]);
  });
  it("is the same words when it is written and split again", () => {
    for (const words of [[], ["--a=1"], ["a b", "", "it's", 'say "no"', "back\\slash \\"]]) {
      assert.deepEqual(splitWords(joinWords(words)), words);
    }
  });
});
