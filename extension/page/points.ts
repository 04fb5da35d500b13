/** What can be drawn under the roof: lines or kernels whose FLOPs and bytes are known. */

import {
  clip,
  DASH,
  shortName,
  showByteRate,
  showBytes,
  showFlop,
  showFlopRate,
  showNumber,
  showShare,
  showUs,
} from "./format";
import { codeOf, type Known, placeOf, type Value, type Work } from "./value";

export type View = "lines" | "kernels";

export interface Point {
  /** Its place in the value's lines or kernels. */
  readonly index: number;
  /** The line that a click leads to. */
  readonly line: number | null;
  readonly intensity: number;
  readonly rate: number;
  readonly us: number;
  readonly verdict: string | null;
  readonly known: Known;
  readonly pipe: string | null;
  readonly label: string;
}

export interface Points {
  /** The costliest first. */
  readonly points: readonly Point[];
  /** The share of the time that they stand for. */
  readonly ratio: number;
  readonly without: number;
}

export function pointsOf(value: Value, view: View): Points {
  const all = view === "lines" ? value.lines : value.kernels;
  const points: Point[] = [];
  let [drawn, whole] = [0, 0];
  all.forEach((each, index) => {
    const work = each.work;
    whole += each.us;
    if (!work?.intensity || !work.flop_per_s) {
      return;
    }
    drawn += each.us;
    const line = "name" in each ? each.line : index;
    points.push({
      index,
      line,
      intensity: work.intensity,
      rate: work.flop_per_s,
      us: each.us,
      verdict: each.verdict,
      known: work.known,
      pipe: work.pipe,
      label: labelOf(value, view, index),
    });
  });
  points.sort((a, b) => b.us - a.us);
  return { points, ratio: whole > 0 ? drawn / whole : 0, without: all.length - points.length };
}

function labelOf(value: Value, view: View, index: number): string {
  if (view === "lines") {
    const line = value.lines[index];
    return line ? placeOf(value, line) : "";
  }
  const kernel = value.kernels[index];
  const line = kernel?.line == null ? undefined : value.lines[kernel.line];
  const op = kernel?.op?.replace(/^aten::/, "") ?? clip(shortName(value.names[kernel?.name ?? -1] ?? ""), 18);
  return line ? `${op} · ${placeOf(value, line)}` : op;
}

export interface Fact {
  readonly name: string;
  readonly text: string;
  readonly known: string | null;
}

/** The numbers of a point for whoever asks: each with how it is known, a dash with why it is not. */
export function factsOf(value: Value, view: View, index: number): { title: string; code: string; facts: Fact[] } {
  const one = view === "lines" ? value.lines[index] : value.kernels[index];
  const facts: Fact[] = [];
  if (!one) {
    return { title: "", code: "", facts };
  }
  const per = value.step_count ? " a step" : "";
  const share = one.share == null ? "" : ` (${showShare(one.share)})`;
  facts.push({
    name: value.on_gpu ? "GPU time" : "CPU time",
    text: `${showUs(one.us)}${per}${share}`,
    known: "measured",
  });
  facts.push(...workFacts(one.work, one.why_no_work, value.step_count || 1));
  if ("name" in one) {
    const line = one.line == null ? undefined : value.lines[one.line];
    const place = line ? placeOf(value, line) : "no line";
    const name = shortName(value.names[one.name] ?? "");
    return {
      title: `${one.op ?? ""} ${one.backward ? "backward " : ""}on ${place}`.trim(),
      code: clip(name, 140),
      facts,
    };
  }
  return { title: placeOf(value, one), code: clip(codeOf(value, one), 90), facts };
}

export function workFacts(work: Work | null, why: string | null, steps: number): Fact[] {
  const unknown = why ?? "not known";
  const facts: Fact[] = [];
  const add = (name: string, number: number | null | undefined, show: (number: number) => string, known: string) =>
    facts.push({ name, text: number == null ? DASH : show(number), known: number == null ? unknown : known });
  add("FLOPs", work?.flop, (flop) => showFlop(flop / steps), work?.flop_known ?? "");
  add("DRAM traffic", work?.dram_bytes, (bytes) => showBytes(bytes / steps), work?.dram_known ?? "");
  add("intensity", work?.intensity, (intensity) => `${showNumber(intensity)}\u00a0FLOP/B`, work?.known ?? "");
  const pipe = work?.pipe ? ` ${work.pipe}` : "";
  add("achieved", work?.flop_per_s, (rate) => showFlopRate(rate) + pipe, work?.flop_known ?? "");
  add("bandwidth", work?.bytes_per_s, showByteRate, work?.dram_known ?? "");
  add("of its roof", work?.roof_ratio, showShare, work?.known ?? "");
  if (work?.occupancy_ratio != null) {
    add("occupancy", work.occupancy_ratio, showShare, "ncu");
  }
  if (work?.stall && work.stall_ratio != null) {
    facts.push({ name: "top stall", text: `${work.stall}, ${showShare(work.stall_ratio)}`, known: "ncu" });
  }
  if (work && work.covered_ratio < 0.995) {
    facts.push({
      name: "these are of",
      text: `${showShare(work.covered_ratio)} of the time`,
      known: "the rest is not known",
    });
  }
  return facts;
}
