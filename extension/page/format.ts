/** Numbers as a reader wants them, as everywhere in rooflint: three significant digits, and the unit that fits. */

export const DASH = "–";

export function showNumber(number: number): string {
  if (Math.abs(number) >= 999.5) {
    return Math.round(number).toLocaleString("en-US");
  }
  return String(Number(number.toPrecision(3)));
}

function scaled(value: number, units: readonly (readonly [string, number])[]): string {
  let [name, scale] = units[0] as readonly [string, number];
  for (const [bigger, factor] of units.slice(1)) {
    if (Math.abs(value) < 0.9995 * factor) {
      break;
    }
    [name, scale] = [bigger, factor];
  }
  return `${showNumber(value / scale)}\u00a0${name}`;
}

const PREFIXES = ["", "k", "M", "G", "T", "P"];

function prefixed(value: number, unit: string): string {
  return scaled(
    value,
    PREFIXES.map((prefix, power) => [prefix + unit, 1000 ** power] as const),
  );
}

export function showUs(us: number): string {
  return scaled(us, [
    ["ns", 1e-3],
    ["µs", 1],
    ["ms", 1e3],
    ["s", 1e6],
  ]);
}

export const showBytes = (count: number) => prefixed(count, "B");
export const showFlop = (count: number) => prefixed(count, "FLOP");
export const showFlopRate = (rate: number) => `${prefixed(rate, "FLOP")}/s`;
export const showByteRate = (rate: number) => `${prefixed(rate, "B")}/s`;

export function showShare(ratio: number): string {
  const percent = 100 * ratio;
  if (percent > 0 && percent < 0.1) {
    return "<0.1\u00a0%";
  }
  return `${percent >= 9.95 ? percent.toFixed(0) : Number(percent.toPrecision(2))}\u00a0%`;
}

/** A kernel's name without what all of them have. */
export function shortName(name: string): string {
  return name.replace(/\bvoid |at::native::|\(anonymous namespace\)::|std::/g, "");
}

export function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
