/** The roofline: what each line or kernel achieved, under what the device could do at its intensity. */

import uPlot from "uplot";
import { make } from "./dom";
import { showByteRate, showFlopRate, showNumber } from "./format";
import { swatch, trace, VERDICTS, verdictColor, verdictName } from "./marks";
import { factsOf, type Points, pointsOf, type View } from "./points";
import { color, FONT, onTheme } from "./theme";
import { announcer, Tip } from "./tip";
import type { Value } from "./value";

const HEIGHT = 440;
const LABELLED = 5;
const REACH = 14;
/** Points of less of the time do not stretch the first picture. */
const WORTH = 0.001;

interface Roof {
  readonly name: string;
  readonly rate: number;
  readonly used: boolean;
}

export class Roofline {
  readonly element: HTMLElement;
  readonly #value: Value;
  readonly #choose: (line: number) => void;
  readonly #tip = new Tip();
  readonly #ring = make("div", { class: "ring", hidden: "" });
  readonly #told = announcer();
  readonly #note = make("p", { class: "note" });
  readonly #plotBox = make("div", {
    class: "plot",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "roofline plot",
    "aria-label":
      "Roofline plot. Arrow keys go from point to point, the costliest first; Enter shows the line; plus and minus zoom; 0 shows all.",
  });
  #drawn: Points;
  #roofs: Roof[] = [];
  #roofNames: { text: string; right: number; bottom: number; used: boolean }[] = [];
  #plot: uPlot | undefined;
  /** Where each point is, in CSS pixels of the plot's inside, and how large. */
  #places: Float32Array = new Float32Array();
  #selected = -1;

  constructor(value: Value, view: View, choose: (line: number) => void, onView: (view: View) => void) {
    this.#value = value;
    this.#choose = choose;
    this.#drawn = pointsOf(value, view);
    const buttons = (["lines", "kernels"] as const).map((each) => {
      const button = make("button", { type: "button", "aria-pressed": String(each === view) }, each);
      button.addEventListener("click", () => {
        for (const other of buttons) {
          other.setAttribute("aria-pressed", String(other === button));
        }
        this.#show(each);
        onView(each);
      });
      return button;
    });
    const reset = make("button", { type: "button", title: "Show all (0)" }, "Show all");
    reset.addEventListener("click", () => this.#showAll());
    this.element = make(
      "section",
      { class: "card roofline", "aria-labelledby": "roofline-title" },
      make(
        "header",
        {},
        make("h2", { id: "roofline-title" }, "Roofline"),
        value.lines.length > 0 &&
          value.kernels.length > 0 &&
          make("div", { class: "buttons", role: "group", "aria-label": "What the points are" }, ...buttons),
        reset,
      ),
      this.#plotBox,
      this.#legend(),
      this.#note,
      this.#told.element,
    );
    this.#view = view;
    this.#plotBox.addEventListener("keydown", (event) => this.#key(event));
    this.#plotBox.addEventListener("blur", () => this.#select(-1));
    onTheme(() => this.#plot?.redraw(false, true));
  }

  #view: View;

  /** Draws, once the element stands in the page and has a width. */
  start(): void {
    this.#show(this.#view);
    new ResizeObserver(() => {
      const width = this.#plotBox.clientWidth;
      if (this.#plot && width && width !== this.#plot.width) {
        this.#plot.setSize({ width, height: HEIGHT });
      }
    }).observe(this.#plotBox);
  }

  #show(view: View): void {
    this.#view = view;
    this.#drawn = pointsOf(this.#value, view);
    this.#select(-1);
    this.#plot?.destroy();
    this.#plot = undefined;
    this.#plotBox.replaceChildren();
    const { points, ratio, without } = this.#drawn;
    const missing = this.#value.peaks_missing;
    const parts: string[] = [];
    if (missing) {
      parts.push(`No roof: ${missing}.`);
    }
    if (points.length) {
      if (without) {
        const percent = ratio > 0.995 && ratio < 1 ? "over 99" : (100 * ratio).toFixed(0);
        parts.push(
          `The points stand for ${percent} % of the time; ${showNumber(without)} ${view} cannot be drawn, ` +
            "since their FLOPs or bytes are not known: the table says why.",
        );
      }
    } else {
      this.#plotBox.append(make("p", { class: "empty" }, this.#whyEmpty(view)));
    }
    this.#note.textContent = parts.join(" ");
    if (points.length) {
      this.#roofs = this.#findRoofs();
      this.#plot = this.#make();
      this.#plot.over.append(this.#ring);
    }
  }

  #whyEmpty(view: View): string {
    const all = view === "lines" ? this.#value.lines : this.#value.kernels;
    const why = all.find((each) => each.why_no_work)?.why_no_work;
    return all.length
      ? `None of the ${view} can be drawn: ${why ?? "their FLOPs and bytes are not known"}.`
      : `No ${view} were recorded.`;
  }

  #legend(): HTMLElement {
    const seen = new Set([...this.#value.lines, ...this.#value.kernels].map(({ verdict }) => verdictName(verdict)));
    const items = VERDICTS.filter((verdict) => seen.has(verdict)).map((verdict) => {
      const item = make("li", {}, swatch(verdict), verdict);
      onTheme(() => item.replaceChild(swatch(verdict), item.firstChild as Node));
      return item;
    });
    return make(
      "ul",
      { class: "legend", "aria-label": "Legend" },
      ...items,
      make("li", { class: "apart" }, "area: time"),
      make("li", {}, "filled: counted by ncu"),
      make("li", {}, "outlined: estimated from shapes"),
    );
  }

  /** Ceilings of one height are one; those that no point runs on are drawn faintly. */
  #findRoofs(): Roof[] {
    const used = new Set(this.#drawn.points.map(({ pipe }) => pipe));
    const roofs: Roof[] = [];
    for (const { pipe, tensor, flop_per_s } of this.#value.peaks?.flop_per_s ?? []) {
      const twice = this.#value.peaks?.flop_per_s.filter((other) => other.pipe === pipe).length !== 1;
      const name = tensor && twice ? `${pipe} tensor` : pipe;
      const same = roofs.findIndex((roof) => Math.abs(roof.rate / flop_per_s - 1) < 0.01);
      const before = roofs[same];
      if (before) {
        roofs[same] = { ...before, name: `${before.name}, ${name}`, used: before.used || used.has(pipe) };
      } else {
        roofs.push({ name, rate: flop_per_s, used: used.has(pipe) });
      }
    }
    return roofs;
  }

  /** All points, or those that are worth it, with the ridges of the roofs that they are under. */
  #extent(all: boolean): { x: [number, number]; y: [number, number] } {
    const whole = this.#drawn.points.reduce((sum, { us }) => sum + us, 0);
    const points = this.#drawn.points.filter(({ us }, number) => all || number < LABELLED || us >= WORTH * whole);
    const dram = this.#value.peaks?.dram_bytes_per_s;
    const used = this.#roofs.filter((roof) => roof.used);
    const xs = points.map(({ intensity }) => intensity);
    const ys = points.map(({ rate }) => rate);
    if (dram) {
      xs.push(...used.map(({ rate }) => rate / dram));
      ys.push(...used.map(({ rate }) => rate));
    }
    const around = (values: number[], low: number, high: number): [number, number] => {
      let [least, most] = [Number.POSITIVE_INFINITY, 0];
      for (const value of values) {
        least = Math.min(least, value);
        most = Math.max(most, value);
      }
      return [least / low, most * high];
    };
    return { x: around(xs, 2.5, 4), y: around(ys, 3, 4.5) };
  }

  #make(): uPlot {
    const { x, y } = this.#extent(false);
    const axis = (label: string, show: (value: number) => string, size: number): uPlot.Axis => ({
      label,
      labelFont: FONT,
      labelSize: 22,
      font: FONT,
      size,
      gap: 6,
      stroke: () => color("muted"),
      grid: { stroke: () => color("grid"), width: 1 },
      ticks: { stroke: () => color("grid"), width: 1, size: 5 },
      splits: (_, __, min, max) => splitsOf(min, max),
      filter: (_, splits) => splits,
      values: (_, splits) => labels(splits, show),
    });
    const free: uPlot.Scale = { distr: 3, time: false, range: (_, min, max) => [min, max] };
    return new uPlot(
      {
        width: this.#plotBox.clientWidth || 600,
        height: HEIGHT,
        padding: [10, 10, 0, 0],
        legend: { show: false },
        scales: { x: free, y: free },
        axes: [
          axis("arithmetic intensity (FLOP per byte of DRAM traffic)", showNumber, 34),
          axis("achieved (FLOP/s)", (rate) => showFlopRate(rate).replace("FLOP/s", ""), 54),
        ],
        series: [{}, { paths: () => null, points: { show: false } }],
        cursor: { drag: { x: true, y: true, uni: 20 }, points: { show: false }, x: false, y: false },
        hooks: {
          draw: [(plot) => this.#draw(plot)],
          ready: [(plot) => this.#listen(plot)],
        },
      },
      [x, y],
      this.#plotBox,
    );
  }

  #showAll(): void {
    const { x, y } = this.#extent(true);
    this.#plot?.batch(() => {
      this.#plot?.setScale("x", { min: x[0], max: x[1] });
      this.#plot?.setScale("y", { min: y[0], max: y[1] });
    });
  }

  #zoom(factor: number, at?: { left: number; top: number }): void {
    const plot = this.#plot;
    if (!plot) {
      return;
    }
    const { left, top } = at ?? { left: plot.over.clientWidth / 2, top: plot.over.clientHeight / 2 };
    const around = (scale: "x" | "y", middle: number) => {
      const { min, max } = plot.scales[scale] as { min: number; max: number };
      return { min: middle * (min / middle) ** factor, max: middle * (max / middle) ** factor };
    };
    const [x, y] = [around("x", plot.posToVal(left, "x")), around("y", plot.posToVal(top, "y"))];
    plot.batch(() => {
      plot.setScale("x", x);
      plot.setScale("y", y);
    });
  }

  // --- drawing --------------------------------------------------------------------------

  #draw(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const scale = window.devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = FONT.replace("12px", `${12 * scale}px`);
    const taken = this.#drawRoofs(plot, scale);
    this.#drawPoints(plot, scale);
    this.#nameRoofs(ctx, scale);
    this.#drawLabels(plot, scale, taken);
    ctx.restore();
    this.#placeRing();
  }

  #drawRoofs(plot: uPlot, scale: number): Box[] {
    const { ctx, bbox } = plot;
    const dram = this.#value.peaks?.dram_bytes_per_s;
    const taken: Box[] = [];
    if (!dram) {
      return taken;
    }
    const { min, max } = plot.scales["x"] as { min: number; max: number };
    const at = (x: number, y: number) => [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)] as const;
    const line = (from: readonly [number, number], to: readonly [number, number], used: boolean) => {
      ctx.beginPath();
      ctx.moveTo(...from);
      ctx.lineTo(...to);
      ctx.strokeStyle = color(used ? "roof" : "faint");
      ctx.lineWidth = (used ? 2 : 1) * scale;
      ctx.setLineDash(used ? [] : [5 * scale, 4 * scale]);
      ctx.stroke();
      ctx.setLineDash([]);
    };
    const right = bbox.left + bbox.width - 8 * scale;
    this.#roofNames = [];
    const rows: number[] = [];
    const used = this.#roofs.filter((roof) => roof.used);
    const shown: Roof[] = [];
    for (const roof of [...used, ...this.#roofs.filter((each) => !each.used)]) {
      const from = Math.max(roof.rate / dram, min);
      const [x, y] = at(from, roof.rate);
      const text = `${roof.name} ${showFlopRate(roof.rate)}`;
      const width = ctx.measureText(text).width;
      // Above its line, or below it where another's name stands there.
      const row = [y - 3 * scale, y + 17 * scale].find(
        (bottom) =>
          bottom - 15 * scale > bbox.top &&
          bottom < bbox.top + bbox.height &&
          !rows.some((other) => Math.abs(other - bottom) < 15 * scale),
      );
      const room = row !== undefined && right - width > x;
      if (from >= max || !(room || roof.used)) {
        continue;
      }
      shown.push(roof);
      line([x, y], at(max, roof.rate), roof.used);
      if (room) {
        rows.push(row);
        this.#roofNames.push({ text, right, bottom: row, used: roof.used });
        taken.push({ left: right - width, top: row - 15 * scale, right, bottom: row });
      }
    }
    const highest = Math.max(...shown.map(({ rate }) => rate), 0);
    const solid = Math.max(...used.map(({ rate }) => rate), 0) || highest;
    const ridge = solid ? Math.min(solid / dram, max) : max;
    line(at(min, min * dram), at(ridge, ridge * dram), true);
    if (highest > solid) {
      line(at(ridge, ridge * dram), at(Math.min(highest / dram, max), Math.min(highest / dram, max) * dram), false);
    }
    this.#drawDramLabel(plot, scale, dram, Math.min(...used.map(({ rate }) => rate), solid || max * dram), taken);
    return taken;
  }

  /** Over the points, which may lie where the names have to stand. */
  #nameRoofs(ctx: CanvasRenderingContext2D, scale: number): void {
    ctx.textAlign = "right";
    ctx.textBaseline = "bottom";
    ctx.lineJoin = "round";
    ctx.lineWidth = 4 * scale;
    ctx.strokeStyle = color("panel");
    for (const { text, right, bottom, used } of this.#roofNames) {
      ctx.strokeText(text, right, bottom);
      ctx.fillStyle = color(used ? "text" : "muted");
      ctx.fillText(text, right, bottom);
    }
  }

  /** Along its line, where that is lowest and still in sight. */
  #drawDramLabel(plot: uPlot, scale: number, dram: number, lowest: number, taken: Box[]): void {
    const { ctx } = plot;
    const { min, max } = plot.scales["x"] as { min: number; max: number };
    const floor = (plot.scales["y"] as { min: number }).min;
    const [from, to] = [Math.max(min, floor / dram), Math.min(max, lowest / dram)];
    if (from >= to) {
      return;
    }
    const start = [plot.valToPos(from, "x", true), plot.valToPos(from * dram, "y", true)] as const;
    const end = [plot.valToPos(to, "x", true), plot.valToPos(to * dram, "y", true)] as const;
    const text = `DRAM ${showByteRate(dram)}`;
    const width = ctx.measureText(text).width;
    if (Math.hypot(end[0] - start[0], end[1] - start[1]) < width + 40 * scale) {
      return;
    }
    ctx.save();
    const part = 0.45;
    ctx.translate(start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1]));
    ctx.rotate(Math.atan2(end[1] - start[1], end[0] - start[0]));
    ctx.textAlign = "center";
    ctx.textBaseline = "bottom";
    ctx.fillStyle = color("text");
    ctx.fillText(text, 0, -4 * scale);
    ctx.restore();
    taken.push({ left: start[0], top: start[1] - 8 * scale, right: start[0], bottom: start[1] });
  }

  #drawPoints(plot: uPlot, scale: number): void {
    const { points } = this.#drawn;
    const { ctx, bbox } = plot;
    const most = Math.max(...points.slice(0, 1).map(({ us }) => us), 1e-9);
    const largest = points.length > 1500 ? 13 : 20;
    this.#places = new Float32Array(3 * points.length);
    const paths = new Map<string, { verdict: string | null; filled: boolean; path: Path2D }>();
    // The costliest are drawn first, so that none hides a smaller one.
    points.forEach((point, number) => {
      const x = plot.valToPos(point.intensity, "x", true);
      const y = plot.valToPos(point.rate, "y", true);
      const r = Math.max(points.length > 1500 ? 2 : 3, largest * Math.sqrt(Math.max(0, point.us) / most));
      this.#places.set([(x - bbox.left) / scale, (y - bbox.top) / scale, r], 3 * number);
      const band = number < 200 ? number : 200 + Math.floor(number / 1000);
      const key = `${band} ${verdictName(point.verdict)} ${point.known}`;
      let group = paths.get(key);
      if (!group) {
        group = { verdict: point.verdict, filled: point.known === "ncu", path: new Path2D() };
        paths.set(key, group);
      }
      trace(group.path, point.verdict, x, y, r * scale);
    });
    for (const { verdict, filled, path } of paths.values()) {
      ctx.globalAlpha = filled ? 0.78 : 0.22;
      ctx.fillStyle = verdictColor(verdict);
      ctx.fill(path);
      ctx.globalAlpha = 1;
      ctx.strokeStyle = filled ? color("panel") : verdictColor(verdict);
      ctx.lineWidth = (filled ? 1 : 1.6) * scale;
      ctx.stroke(path);
    }
  }

  /** Names of the costliest points, each where it covers nothing, or not at all. */
  #drawLabels(plot: uPlot, scale: number, taken: Box[]): void {
    const { ctx, bbox } = plot;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    const { points } = this.#drawn;
    const named = points.slice(0, LABELLED);
    const crowd = points.slice(0, 300);
    const marks = crowd.map((_, number) => {
      const [x, y, r] = this.#place(number);
      const [left, top, size] = [bbox.left + x * scale, bbox.top + y * scale, r * scale];
      return { left: left - size, top: top - size, right: left + size, bottom: top + size };
    });
    named.forEach((point, number) => {
      const mark = marks[number] as Box;
      const [width, height, gap] = [ctx.measureText(point.label).width, 15 * scale, 5 * scale];
      const [midX, midY] = [(mark.left + mark.right) / 2, (mark.top + mark.bottom) / 2];
      const spots = [
        [mark.right + gap, midY],
        [mark.left - gap - width, midY],
        [midX - width / 2, mark.bottom + gap + height / 2],
        [midX - width / 2, mark.top - gap - height / 2],
        [mark.right, mark.bottom + height / 2],
        [mark.left - width, mark.bottom + height / 2],
        [mark.right, mark.top - height / 2],
        [mark.right + gap, midY + 2 * height],
        [mark.left - gap - width, midY + 2 * height],
        [midX - width / 2, mark.bottom + gap + 2 * height],
      ] as const;
      const free = spots
        .map(([left, middle]) => ({ left, top: middle - height / 2, right: left + width, bottom: middle + height / 2 }))
        .find(
          (box) =>
            box.left >= bbox.left &&
            box.right <= bbox.left + bbox.width &&
            box.top >= bbox.top &&
            box.bottom <= bbox.top + bbox.height &&
            ![...taken, ...marks.filter((other) => other !== mark)].some((other) => overlaps(box, other)),
        );
      if (!free) {
        return;
      }
      taken.push(free);
      const middle = (free.top + free.bottom) / 2;
      ctx.lineJoin = "round";
      ctx.lineWidth = 4 * scale;
      ctx.strokeStyle = color("panel");
      ctx.strokeText(point.label, free.left, middle);
      ctx.fillStyle = color("text");
      ctx.fillText(point.label, free.left, middle);
    });
  }

  // --- pointing ---------------------------------------------------------------------------

  #place(number: number): [number, number, number] {
    return [this.#places[3 * number] ?? 0, this.#places[3 * number + 1] ?? 0, this.#places[3 * number + 2] ?? 0];
  }

  #listen(plot: uPlot): void {
    const { over } = plot;
    over.addEventListener("mousemove", (event) => {
      const { left, top } = over.getBoundingClientRect();
      const nearest = event.buttons ? -1 : this.#nearest(event.clientX - left, event.clientY - top);
      this.#select(nearest, event);
    });
    over.addEventListener("mouseleave", () => this.#select(-1));
    let down = [0, 0];
    over.addEventListener("mousedown", (event) => {
      down = [event.clientX, event.clientY];
    });
    over.addEventListener("click", (event) => {
      const moved = Math.hypot(event.clientX - (down[0] ?? 0), event.clientY - (down[1] ?? 0));
      if (moved < 4 && this.#selected >= 0) {
        this.#open(this.#selected);
      }
    });
    over.addEventListener(
      "wheel",
      (event) => {
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          const { left, top } = over.getBoundingClientRect();
          this.#zoom(event.deltaY < 0 ? 0.8 : 1.25, { left: event.clientX - left, top: event.clientY - top });
        }
      },
      { passive: false },
    );
  }

  #nearest(x: number, y: number): number {
    let [nearest, least] = [-1, REACH];
    for (let number = 0; number < this.#drawn.points.length; number++) {
      const [px, py, r] = this.#place(number);
      // Inside of a large mark a small one on top of it is meant.
      const distance = Math.max(0, Math.hypot(px - x, py - y) - r) + r / 100;
      if (distance < least) {
        [nearest, least] = [number, distance];
      }
    }
    return nearest;
  }

  #select(number: number, pointer?: MouseEvent): void {
    this.#selected = number;
    const point = this.#drawn.points[number];
    this.#placeRing();
    if (!point || !this.#plot) {
      this.#tip.hide();
      return;
    }
    const [x, y] = this.#place(number);
    const box = this.#plot.over.getBoundingClientRect();
    const { title, code, facts } = factsOf(this.#value, this.#view, point.index);
    const judged = this.#view === "lines" ? this.#value.lines[point.index] : this.#value.kernels[point.index];
    const hint = [verdictName(judged?.verdict ?? null), judged?.reason].filter(Boolean).join(": ");
    this.#tip.show(pointer?.clientX ?? box.left + x, pointer?.clientY ?? box.top + y, title, code, facts, hint);
    if (!pointer) {
      const told = facts.map((fact) => `${fact.name} ${fact.text} ${fact.known ?? ""}`).join(", ");
      this.#told.say(`${number + 1} of ${this.#drawn.points.length}: ${title}. ${told}. ${hint}`);
    }
  }

  #placeRing(): void {
    const point = this.#drawn.points[this.#selected];
    this.#ring.hidden = !point;
    if (point) {
      const [x, y, r] = this.#place(this.#selected);
      this.#ring.style.left = `${x - r - 4}px`;
      this.#ring.style.top = `${y - r - 4}px`;
      this.#ring.style.width = this.#ring.style.height = `${2 * r + 8}px`;
    }
  }

  #open(number: number): void {
    const line = this.#drawn.points[number]?.line;
    if (line != null) {
      this.#choose(line);
    }
  }

  #key(event: KeyboardEvent): void {
    const count = this.#drawn.points.length;
    const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const step = steps[event.key];
    if (step && count) {
      this.#select(this.#selected < 0 ? (step > 0 ? 0 : count - 1) : (this.#selected + step + count) % count);
    } else if (event.key === "Home" && count) {
      this.#select(0);
    } else if (event.key === "End" && count) {
      this.#select(count - 1);
    } else if (event.key === "Enter" && this.#selected >= 0) {
      this.#open(this.#selected);
    } else if (event.key === "Escape") {
      this.#select(-1);
    } else if (event.key === "+" || event.key === "=") {
      this.#zoom(0.8);
    } else if (event.key === "-") {
      this.#zoom(1.25);
    } else if (event.key === "0") {
      this.#showAll();
    } else {
      return;
    }
    event.preventDefault();
  }
}

interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

function overlaps(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** All round numbers of a logarithmic axis; uPlot itself counts from the axis's end, round or not. */
function splitsOf(min: number, max: number): number[] {
  const splits: number[] = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power++) {
    for (let digit = 1; digit < 10; digit++) {
      const split = digit * 10 ** power;
      if (split >= min && split <= max) {
        splits.push(split);
      }
    }
  }
  return splits;
}

/** Powers of ten alone where there are many, more where one has zoomed in. */
function labels(splits: readonly number[], show: (value: number) => string): string[] {
  const [least, most] = [splits[0] ?? 1, splits[splits.length - 1] ?? 1];
  const decades = Math.log10(most / least);
  const wanted = decades > 2 ? [1] : decades > 0.8 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
  return splits.map((split) => {
    const digit = split / 10 ** Math.floor(Math.log10(split) + 1e-9);
    return wanted.some((each) => Math.abs(digit - each) < 1e-6) ? show(split) : "";
  });
}
