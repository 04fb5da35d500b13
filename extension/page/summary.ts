/** The top of the page: what ran where, what limits it, and what to do first. */

import { badge, make, missing } from "./dom";
import { showFlop, showFlopRate, showNumber, showShare, showUs } from "./format";
import { swatch, verdictName } from "./marks";
import { onTheme } from "./theme";
import { placeOf, type Value } from "./value";

export function summary(value: Value, choose: (line: number) => void): HTMLElement {
  const { step } = value;
  const verdict = make("span", { class: "limiter" });
  const paint = () => verdict.replaceChildren(swatch(verdictName(step.verdict)), verdictName(step.verdict));
  onTheme(paint);
  paint();
  return make(
    "header",
    { class: "summary" },
    make("div", { class: "title" }, make("h1", {}, value.title), make("p", { class: "where" }, whereOf(value))),
    make("div", { class: "tiles" }, ...tiles(value)),
    make("p", { class: "headline" }, verdict, " ", step.reason ?? ""),
    gains(value, choose),
  );
}

function whereOf(value: Value): string {
  const parts = [value.device + (value.device_count > 1 ? ` × ${value.device_count}` : "")];
  if (value.torch) {
    parts.push(`torch ${value.torch}`);
  }
  if (value.command && value.command !== value.title) {
    parts.push(value.command);
  }
  if (value.step_count) {
    const first = (value.first_step ?? 0) + 1;
    const last = first + value.step_count - 1;
    const which = value.step_count === 1 ? `step ${first}` : `steps ${first} to ${last}`;
    const count = value.step_count === 1 ? "1 step" : `${value.step_count} steps`;
    parts.push(value.steps_seen ? `${which} of ${value.steps_seen} recorded` : `${count} recorded`);
  }
  if (value.counters_ratio != null) {
    parts.push(`counters from ncu for ${showShare(value.counters_ratio)} of GPU time`);
  } else if (value.on_gpu) {
    parts.push("no hardware counters: rooflines are estimated from shapes");
  }
  if (value.made_at) {
    parts.push(value.made_at.replace("T", " ").slice(0, 16));
  }
  return parts.join(" · ");
}

function tiles(value: Value): HTMLElement[] {
  const { step } = value;
  const tile = (name: string, number: Node | string, known: string | null, more = "", hint = "") =>
    make(
      "div",
      { class: "tile", ...(hint ? { title: hint } : {}) },
      make("span", { class: "name" }, name),
      make("span", { class: "big" }, number),
      make("span", { class: "detail" }, badge(known), more),
    );
  const shown: HTMLElement[] = [];
  if (step.us) {
    const slower =
      step.recorded_us && step.recorded_us > 1.1 * step.us ? `${showUs(step.recorded_us)} while recorded` : "";
    shown.push(tile(value.step_count ? "step" : "recorded", showUs(step.us), "measured", slower));
  }
  if (value.on_gpu) {
    shown.push(
      step.busy_ratio == null
        ? tile("GPU busy", missing("the recording has no times of kernels in a row"), null)
        : tile("GPU busy", showShare(step.busy_ratio), "measured", step.busy_us == null ? "" : showUs(step.busy_us)),
    );
  }
  if (step.kernel_count) {
    shown.push(
      tile(
        value.step_count ? "kernels a step" : "kernels",
        showNumber(step.kernel_count),
        "measured",
        step.kernel_us == null ? "" : `${showUs(step.kernel_us)} each on average`,
      ),
    );
  }
  if (value.on_gpu) {
    const why = value.peaks_missing ?? "no steps, or no matrix products whose shapes are known";
    shown.push(
      step.mfu
        ? tile(
            "MFU",
            `${step.mfu.at_least ? "≥ " : ""}${showShare(step.mfu.ratio)}`,
            "estimated",
            `of ${step.mfu.precision} ${showFlopRate(step.mfu.peak_flop_per_s)}`,
            `${showFlop(step.mfu.model_flop)} of matrix products, forward and backward${value.step_count ? ", a step" : ""}`,
          )
        : tile("MFU", missing(why), null, clipReason(why)),
    );
  }
  return shown;
}

function clipReason(why: string): string {
  return why.split(",")[0] ?? why;
}

function gains(value: Value, choose: (line: number) => void): HTMLElement | null {
  if (!value.gains.length) {
    return null;
  }
  const per = value.step_count ? " a step" : "";
  const items = value.gains.map((gain) => {
    const line = gain.line == null ? undefined : value.lines[gain.line];
    const item = make("li", {}, make("span", { class: "what" }, gain.title));
    const share = gain.ratio == null ? "" : ` (${showShare(gain.ratio)})`;
    item.append(make("span", { class: "saves" }, `up to ${showUs(gain.us)}${per}${share} `, badge("estimated")));
    if (line && gain.line != null) {
      const button = make("button", { type: "button", class: "go" }, placeOf(value, line));
      const index = gain.line;
      button.addEventListener("click", () => choose(index));
      item.append(button);
    }
    return item;
  });
  return make(
    "section",
    { class: "gains", "aria-labelledby": "gains-title" },
    make("h2", { id: "gains-title" }, "Where most can be gained"),
    make("ol", {}, ...items),
  );
}
