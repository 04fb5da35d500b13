/** The steps over time: what each GPU ran, why it computed nothing, what the CPU did, where it waited. */

import uPlot from "uplot";
import { make } from "./dom";
import { clip, shortName, showNumber, showUs } from "./format";
import { verdictColor } from "./marks";
import type { Fact } from "./points";
import { color, FONT, onTheme } from "./theme";
import { announcer, Tip } from "./tip";
import { codeOf, placeOf, type Value } from "./value";

const LEFT = 96;
const TOP = 26;
const LANE_GAP = 6;

/** In which colour of the style sheet, and in which words. Also the order of the legend. */
const CAUSES: Readonly<Record<string, readonly [string, string]>> = {
  host: ["idle-host", "CPU at work"],
  "data loading": ["idle-loading", "loading data"],
  launch: ["idle-launch", "launches"],
  sync: ["idle-sync", "behind waits"],
  copy: ["copy", "copies"],
  communication: ["communication", "communication"],
  other: ["idle-other", "not known"],
};

interface Lane {
  readonly name: string;
  readonly kind: "work" | "idle" | "host" | "wait";
  readonly height: number;
  top: number;
  /** Rows of the value's timeline, in order of their start. */
  readonly rows: number[];
}

export class Timeline {
  readonly element: HTMLElement;
  readonly #value: Value;
  readonly #choose: (line: number) => void;
  readonly #lanes: Lane[];
  readonly #tip = new Tip();
  readonly #told = announcer();
  readonly #box = make("div", {
    class: "plot",
    tabindex: "0",
    role: "application",
    "aria-roledescription": "timeline",
    "aria-label":
      "Timeline of the steps. Left and right move, plus and minus zoom, 0 shows all; drag to zoom in with the mouse.",
  });
  #plot: uPlot | undefined;
  #hovered = -1;

  constructor(value: Value, choose: (line: number) => void) {
    this.#value = value;
    this.#choose = choose;
    this.#lanes = lanesOf(value);
    const button = (text: string, title: string, act: () => void) => {
      const element = make("button", { type: "button", title, "aria-label": title }, text);
      element.addEventListener("click", act);
      return element;
    };
    this.element = make(
      "section",
      { class: "card timeline", "aria-labelledby": "timeline-title" },
      make(
        "header",
        {},
        make("h2", { id: "timeline-title" }, value.step_count ? "Steps over time" : "Over time"),
        make(
          "div",
          { class: "buttons" },
          button("−", "Zoom out", () => this.#zoom(1.6)),
          button("+", "Zoom in", () => this.#zoom(0.6)),
        ),
        ...(value.timeline.steps.length > 1 ? [button("One step", "Show one step", () => this.#oneStep())] : []),
        button("Show all", "Show all", () => this.#range(0, value.timeline.length_us)),
      ),
      this.#box,
      this.#legend(),
      make("p", { class: "note" }, this.#note()),
      this.#told.element,
    );
    this.#box.addEventListener("keydown", (event) => this.#key(event));
    onTheme(() => this.#plot?.redraw(false, true));
  }

  get isEmpty(): boolean {
    return this.#lanes.length === 0;
  }

  start(): void {
    if (this.isEmpty) {
      this.#box.replaceChildren(
        make("p", { class: "empty" }, "No timeline: this recording tells what was measured, not when."),
      );
      return;
    }
    let top = TOP;
    for (const lane of this.#lanes) {
      lane.top = top;
      top += lane.height + LANE_GAP;
    }
    const height = top + 34;
    this.#plot = new uPlot(
      {
        width: this.#box.clientWidth || 600,
        height,
        padding: [0, 12, 0, LEFT],
        legend: { show: false },
        scales: { x: { time: false, range: (_, min, max) => [min, max] }, y: { range: () => [0, 1] } },
        axes: [
          {
            font: FONT,
            size: 28,
            gap: 4,
            stroke: () => color("muted"),
            grid: { stroke: () => color("grid"), width: 1 },
            ticks: { stroke: () => color("grid"), width: 1, size: 4 },
            values: (_, splits) => splits.map((us) => (us === 0 ? "0" : showUs(us))),
          },
          { show: false },
        ],
        series: [{}, { paths: () => null, points: { show: false } }],
        cursor: { drag: { x: true, y: false }, points: { show: false }, y: false },
        hooks: { draw: [(plot) => this.#draw(plot)], ready: [(plot) => this.#listen(plot)] },
      },
      [
        [0, this.#value.timeline.length_us],
        [0, 1],
      ],
      this.#box,
    );
    new ResizeObserver(() => {
      const width = this.#box.clientWidth;
      if (this.#plot && width && width !== this.#plot.width) {
        this.#plot.setSize({ width, height });
      }
    }).observe(this.#box);
    if (this.#value.timeline.steps.length > 1) {
      this.#oneStep();
    }
  }

  #note(): string {
    const { recorded_us, us } = this.#value.step;
    const slower = recorded_us && us ? recorded_us / us : 1;
    const joined = this.#value.timeline.count.some((count) => count > 1);
    const parts = [];
    if (slower > 1.05) {
      parts.push(
        `Times are as recorded: recording made the step ${showNumber(slower)} times longer, all of it on the CPU.`,
      );
    }
    if (joined) {
      parts.push("What is too short to be seen alone is put together, and as high as the time that it fills.");
    }
    if (this.#value.trace) {
      parts.push(`Every event: open ${this.#value.trace} in ui.perfetto.dev, which reads it in your browser.`);
    }
    return parts.join(" ");
  }

  #legend(): HTMLElement {
    const item = (name: string, text: string) => {
      const mark = make("span", { class: "chip", "aria-hidden": "true" });
      const paint = () => {
        mark.style.background = color(name);
      };
      onTheme(paint);
      paint();
      return make("li", {}, mark, text);
    };
    const idle = this.#value.step.idle_us;
    const per = this.#value.step_count ? " a step" : "";
    const causes = Object.entries(CAUSES).filter(([cause]) => idle[cause]);
    if (!causes.length) {
      return make("ul", { class: "legend" });
    }
    return make(
      "ul",
      { class: "legend", "aria-label": "Why the GPU computes nothing" },
      make("li", { class: "title" }, "GPU computes nothing:"),
      ...causes.map(([cause, [name, words]]) => item(name, `${words} ${showUs(idle[cause] ?? 0)}${per}`)),
    );
  }

  // --- drawing ----------------------------------------------------------------------------

  #draw(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const scale = window.devicePixelRatio || 1;
    const timeline = this.#value.timeline;
    const { min, max } = plot.scales["x"] as { min: number; max: number };
    const perUs = bbox.width / (max - min);
    const at = (us: number) => bbox.left + (us - min) * perUs;
    ctx.save();
    ctx.font = FONT.replace("12px", `${12 * scale}px`);
    ctx.textBaseline = "middle";
    for (const lane of this.#lanes) {
      ctx.textAlign = "right";
      ctx.fillStyle = color("muted");
      ctx.fillText(lane.name, bbox.left - 8 * scale, (lane.top + lane.height / 2) * scale);
    }
    ctx.beginPath();
    ctx.rect(bbox.left, 0, bbox.width, bbox.top + bbox.height);
    ctx.clip();
    this.#drawSteps(plot, scale, at);
    for (const lane of this.#lanes) {
      const [top, height] = [lane.top * scale, lane.height * scale];
      ctx.fillStyle = color("lane");
      ctx.fillRect(bbox.left, top, bbox.width, height);
      let [fill, until] = ["", Number.NEGATIVE_INFINITY];
      for (const row of lane.rows) {
        const start = timeline.start_us[row] ?? 0;
        const us = timeline.us[row] ?? 0;
        if (start + us < min) {
          continue;
        }
        if (start > max) {
          break;
        }
        const left = at(start);
        const right = Math.max(at(start + us), left + 0.6 * scale);
        const wanted = this.#color(lane, row);
        // What the eye cannot tell apart is drawn once.
        if (right <= until && wanted === fill) {
          continue;
        }
        ctx.fillStyle = fill = wanted;
        // Of several that were put together, as high as the part of the time that they fill.
        const filled = us > 0 ? Math.min(1, (timeline.filled_us[row] ?? us) / us) : 1;
        ctx.fillRect(left, top + (1 - filled) * height, right - left, filled * height);
        until = right;
        const width = right - left;
        if (width > 44 * scale && lane.height >= 18) {
          this.#write(ctx, this.#label(lane, row), left, top, width, height, scale);
        } else if (width > 3 * scale) {
          ctx.fillStyle = color("panel");
          ctx.fillRect(right - 0.5 * scale, top, 0.5 * scale, height);
        }
      }
    }
    ctx.restore();
  }

  #drawSteps(plot: uPlot, scale: number, at: (us: number) => number): void {
    const { ctx, bbox } = plot;
    const { steps, first_step } = this.#value.timeline;
    const bottom = bbox.top + bbox.height;
    ctx.textAlign = "left";
    steps.forEach(([start, end], number) => {
      const [left, right] = [at(start), at(end)];
      ctx.fillStyle = color(number % 2 ? "step-odd" : "step-even");
      ctx.fillRect(left, 0, right - left, bottom);
      const name = `step ${(first_step ?? 0) + number + 1} · ${showUs(end - start)}`;
      const [from, to] = [Math.max(left, bbox.left), Math.min(right, bbox.left + bbox.width)];
      if (to - from > ctx.measureText(name).width + 12 * scale) {
        ctx.fillStyle = color("text");
        ctx.fillText(name, from + 6 * scale, (TOP / 2) * scale);
      }
    });
  }

  #write(
    ctx: CanvasRenderingContext2D,
    text: string,
    left: number,
    top: number,
    width: number,
    height: number,
    scale: number,
  ): void {
    ctx.textAlign = "left";
    ctx.fillStyle = color("on-mark");
    let shown = text;
    while (shown.length > 1 && ctx.measureText(shown).width > width - 8 * scale) {
      shown = shown.slice(0, -1);
    }
    if (shown.length > 3) {
      ctx.fillText(shown, left + 4 * scale, top + height / 2);
    }
  }

  #color(lane: Lane, row: number): string {
    const what = this.#value.timeline.what[row] ?? "";
    switch (lane.kind) {
      case "work": {
        const line = this.#value.timeline.line[row];
        if (what !== "kernel") {
          return color(what === "set" ? "set" : what);
        }
        return line == null ? color("unknown") : verdictColor(this.#value.lines[line]?.verdict ?? null);
      }
      case "idle":
        return color(CAUSES[what]?.[0] ?? "idle-other");
      case "wait":
        return color("idle-sync");
      case "host":
        return color(what === "data loading" ? "idle-loading" : row % 2 ? "host-odd" : "host-even");
    }
  }

  #label(lane: Lane, row: number): string {
    const { line, name, what } = this.#value.timeline;
    const of = line[row];
    const place = of == null ? undefined : this.#value.lines[of];
    if (lane.kind === "work" && what[row] !== "kernel") {
      return what[row] ?? "";
    }
    const kernel = name[row];
    if (place) {
      return lane.kind === "host"
        ? `${placeOf(this.#value, place)}  ${codeOf(this.#value, place)}`
        : placeOf(this.#value, place);
    }
    return kernel == null ? (what[row] ?? "") : shortName(this.#value.names[kernel] ?? "");
  }

  // --- pointing ---------------------------------------------------------------------------

  #listen(plot: uPlot): void {
    const { over } = plot;
    over.addEventListener("mousemove", (event) => this.#hover(event));
    over.addEventListener("mouseleave", () => this.#tip.hide());
    let down = 0;
    over.addEventListener("mousedown", (event) => {
      down = event.clientX;
      this.#tip.hide();
    });
    over.addEventListener("click", (event) => {
      const line = this.#value.timeline.line[this.#hovered];
      if (Math.abs(event.clientX - down) < 4 && line != null) {
        this.#choose(line);
      }
    });
    over.addEventListener(
      "wheel",
      (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) {
          event.preventDefault();
          const { left, width } = over.getBoundingClientRect();
          const turned = event.deltaY || event.deltaX;
          if (event.shiftKey) {
            this.#move(turned / width);
          } else {
            this.#zoom(turned < 0 ? 0.8 : 1.25, (event.clientX - left) / width);
          }
        }
      },
      { passive: false },
    );
  }

  #hover(event: MouseEvent): void {
    const plot = this.#plot;
    if (!plot || event.buttons) {
      return;
    }
    const box = plot.over.getBoundingClientRect();
    const us = plot.posToVal(event.clientX - box.left, "x");
    const y = event.clientY - (plot.root.getBoundingClientRect().top ?? 0);
    const lane = this.#lanes.find(({ top, height }) => y >= top && y < top + height);
    const near = (1.5 * ((plot.scales["x"]?.max ?? 1) - (plot.scales["x"]?.min ?? 0))) / box.width;
    this.#hovered = lane ? this.#at(lane, us, near) : -1;
    if (!lane || this.#hovered < 0) {
      this.#tip.hide();
      return;
    }
    const { title, code, facts } = this.#facts(lane, this.#hovered);
    this.#tip.show(event.clientX, event.clientY, title, code, facts);
  }

  #at(lane: Lane, us: number, near: number): number {
    const { start_us, us: lengths } = this.#value.timeline;
    let [low, high] = [0, lane.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((start_us[lane.rows[middle] ?? 0] ?? 0) <= us + near) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    // Streams overlap: of what began before, something longer may still run.
    for (let place = low - 1; place >= Math.max(0, low - 64); place--) {
      const row = lane.rows[place] ?? 0;
      if ((start_us[row] ?? 0) + (lengths[row] ?? 0) >= us - near) {
        return row;
      }
    }
    return -1;
  }

  #facts(lane: Lane, row: number): { title: string; code: string; facts: Fact[] } {
    const timeline = this.#value.timeline;
    const what = timeline.what[row] ?? "";
    const [line, name] = [timeline.line[row], timeline.name[row]];
    const place = line == null ? undefined : this.#value.lines[line];
    const words: Record<Lane["kind"], string> = {
      work: what === "set" ? "fills memory" : what,
      idle: `nothing runs: ${CAUSES[what]?.[1] ?? what}`,
      host: what === "data loading" ? "loads data" : "CPU",
      wait: "CPU waits for the GPU",
    };
    const count = timeline.count[row] ?? 1;
    const facts: Fact[] = [
      { name: "time", text: showUs(timeline.us[row] ?? 0), known: "measured" },
      { name: "from", text: showUs(timeline.start_us[row] ?? 0), known: null },
    ];
    if (count > 1) {
      facts.push({ name: "put together", text: showNumber(count), known: null });
      facts.push({ name: "which fill", text: showUs(timeline.filled_us[row] ?? 0), known: "measured" });
    }
    if (name != null) {
      facts.push({
        name: lane.kind === "wait" ? "call" : "name",
        text: clip(shortName(this.#value.names[name] ?? ""), 70),
        known: null,
      });
    }
    return {
      title: place ? `${words[lane.kind]} · ${placeOf(this.#value, place)}` : words[lane.kind],
      code: place ? clip(codeOf(this.#value, place), 90) : "",
      facts,
    };
  }

  // --- moving ------------------------------------------------------------------------------

  #range(min: number, max: number): void {
    const length = this.#value.timeline.length_us;
    const width = Math.min(Math.max(max - min, Math.min(1, length)), length);
    const left = Math.min(Math.max(0, min), length - width);
    this.#plot?.setScale("x", { min: left, max: left + width });
    this.#told.say(`${showUs(left)} to ${showUs(left + width)}`);
  }

  #zoom(factor: number, at = 0.5): void {
    const { min, max } = (this.#plot?.scales["x"] ?? { min: 0, max: 1 }) as { min: number; max: number };
    const middle = min + at * (max - min);
    this.#range(middle - factor * (middle - min), middle + factor * (max - middle));
  }

  #move(part: number): void {
    const { min, max } = (this.#plot?.scales["x"] ?? { min: 0, max: 1 }) as { min: number; max: number };
    this.#range(min + part * (max - min), max + part * (max - min));
  }

  /** The step in the middle: the first may still have to catch up. */
  #oneStep(): void {
    const { steps } = this.#value.timeline;
    const step = steps[Math.floor(steps.length / 2)];
    if (step) {
      const margin = 0.01 * (step[1] - step[0]);
      this.#range(step[0] - margin, step[1] + margin);
    }
  }

  #key(event: KeyboardEvent): void {
    switch (event.key) {
      case "ArrowLeft":
        this.#move(-0.2);
        break;
      case "ArrowRight":
        this.#move(0.2);
        break;
      case "+":
      case "=":
        this.#zoom(0.6);
        break;
      case "-":
        this.#zoom(1.6);
        break;
      case "0":
        this.#range(0, this.#value.timeline.length_us);
        break;
      default:
        return;
    }
    event.preventDefault();
  }
}

/** Of each device what it ran and why it did not, then the host. */
function lanesOf(value: Value): Lane[] {
  const { device, what } = value.timeline;
  const lanes = new Map<string, Lane>();
  const running = new Set(["kernel", "set"]);
  device.forEach((of, row) => {
    const does = what[row] ?? "";
    let kind: Lane["kind"] = of == null ? "host" : "idle";
    if (of == null && does === "wait") {
      kind = "wait";
    } else if (of != null && (running.has(does) || does === "copy" || does === "communication")) {
      kind = "work";
    }
    const key = `${of ?? "host"} ${kind}`;
    let lane = lanes.get(key);
    if (!lane) {
      const many = value.device_count > 1 && of != null ? ` ${of}` : "";
      const names = { work: `GPU${many}`, idle: "idle because", host: "CPU", wait: "CPU waits" };
      lane = { name: names[kind], kind, height: kind === "work" ? 34 : kind === "host" ? 24 : 16, top: 0, rows: [] };
      lanes.set(key, lane);
    }
    lane.rows.push(row);
  });
  const order = ["work", "idle", "wait", "host"];
  const keyed = [...lanes.entries()].map(([key, lane]) => ({
    host: key.startsWith("host"),
    device: Number.parseInt(key, 10) || 0,
    lane,
  }));
  keyed.sort(
    (a, b) =>
      Number(a.host) - Number(b.host) || a.device - b.device || order.indexOf(a.lane.kind) - order.indexOf(b.lane.kind),
  );
  return keyed.map(({ lane }) => lane);
}
