import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Crashes } from "../src/crashes";

describe("a server that ends by itself", () => {
  it("is started again four times within three minutes, not five", () => {
    const crashes = new Crashes();
    const seconds = [0, 10, 20, 180, 180];
    assert.deepEqual(
      seconds.map((second) => crashes.forgive(second * 1000)),
      [true, true, true, true, false],
    );
  });
  it("is started again however often, if that is rare", () => {
    const crashes = new Crashes();
    for (let minute = 0; minute < 20; minute++) {
      assert.ok(crashes.forgive(minute * 60_000));
    }
  });
});
