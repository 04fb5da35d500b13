import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { rulesOf, suggest } from "../src/pyproject";

const rules = rulesOf(readFileSync("docs/rules.md", "utf8"));
const after = (text: string) => suggest(text, rules).map((each) => each.text);

describe("in pyproject.toml", () => {
  it("the tables are offered where one begins", () => {
    assert.deepEqual(after("[project]\n\n[tool.")[0], "tool.rooflint");
    assert.deepEqual(after("[["), []);
  });
  it("a table offers what is not yet in it", () => {
    assert.deepEqual(after('[tool.rooflint]\nignore = ["a"]\n'), ["select", "assume-device", "exclude"]);
    assert.deepEqual(after('[tool.rooflint.per-file."x/"]\nse'), ["select", "ignore", "assume-device", "severity"]);
    assert.deepEqual(after("[tool.rooflint.severity] # loud\n"), [...rules.keys()]);
  });
  it("a setting offers its values, in lists over several lines too", () => {
    assert.deepEqual(after('[tool.rooflint]\nassume-device = "'), ["unknown", "gpu", "cpu"]);
    assert.deepEqual(after('[tool.rooflint.severity]\nnaive-timing = "'), ["error", "warning", "information", "hint"]);
    assert.ok(after('[tool.rooflint]\nignore = [\n  "item-in-loop", # it is needed\n  "').includes("naive-timing"));
    assert.deepEqual(after('[tool.rooflint]\nexclude = ["'), []);
  });
  it("nothing is offered in tables of others, nor behind a value", () => {
    assert.deepEqual(after('[tool.ruff]\nignore = ["'), []);
    assert.deepEqual(after("[tool.rooflint-other]\n"), []);
    assert.deepEqual(after('[tool.rooflint]\nignore = []\nselect = ["x"] '), []);
    assert.deepEqual(after(""), []);
  });
  it("each rule says what it is about", () => {
    assert.ok(rules.size > 15);
    assert.match(rules.get("item-in-loop") ?? "", /item/);
  });
});
