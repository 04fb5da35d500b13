/** The lines, sortable; a line that is opened shows its code, its numbers and its kernels. */

import { badge, make, missing } from "./dom";
import { clip, DASH, shortName, showNumber, showShare, showUs } from "./format";
import { editorLink, inEditor, recall, remember, reveal } from "./host";
import { swatch, verdictName } from "./marks";
import { workFacts } from "./points";
import { onTheme } from "./theme";
import { codeOf, type Judged, type Kernel, type Line, placeOf, type Value } from "./value";

const MOST_ROWS = 150;
const MOST_KERNELS = 40;

interface Column {
  readonly key: string;
  readonly title: string;
  readonly hint: string;
  readonly number: boolean;
  readonly of: (line: Line) => number | string;
}

export class Table {
  readonly element: HTMLElement;
  readonly #value: Value;
  readonly #columns: Column[];
  readonly #body = make("tbody", {});
  readonly #more = make("button", { type: "button", class: "more" });
  readonly #rows = new Map<number, HTMLTableRowElement>();
  readonly #kernels = new Map<number, Kernel[]>();
  readonly #open = new Set<number>();
  readonly #mostShare: number;
  #sort: { key: string; down: boolean };
  #all = false;

  constructor(value: Value) {
    this.#value = value;
    this.#columns = columnsOf(value);
    this.#mostShare = value.lines.reduce((most, { share }) => Math.max(most, share ?? 0), 1e-9);
    const [key, way] = (recall().sort ?? "us down").split(" ");
    const known = this.#columns.some((column) => column.key === key);
    this.#sort = { key: known && key ? key : "us", down: !known || way !== "up" };
    for (const kernel of value.kernels) {
      if (kernel.line != null) {
        this.#kernels.set(kernel.line, [...(this.#kernels.get(kernel.line) ?? []), kernel]);
      }
    }
    const head = make("tr", {});
    for (const column of this.#columns) {
      const button = make("button", { type: "button", title: column.hint }, column.title);
      const cell = make("th", { scope: "col", class: column.number ? "number" : "", "data-key": column.key }, button);
      button.addEventListener("click", () => {
        const down = this.#sort.key === column.key ? !this.#sort.down : column.number;
        this.#sort = { key: column.key, down };
        remember({ sort: `${column.key} ${down ? "down" : "up"}` });
        this.#fill();
      });
      head.append(cell);
    }
    this.#more.addEventListener("click", () => {
      this.#all = true;
      this.#fill();
    });
    this.element = make(
      "section",
      { class: "card lines", "aria-labelledby": "lines-title" },
      make(
        "header",
        {},
        make("h2", { id: "lines-title" }, value.lines.length ? "Lines" : "Kernels"),
        value.lines.length > 0 && this.#how(),
      ),
      value.lines.length
        ? make("div", { class: "wide" }, make("table", { class: "table" }, make("thead", {}, head), this.#body))
        : this.#kernelTable(value.kernels),
      this.#more,
    );
    this.#body.addEventListener("keydown", (event) => this.#key(event));
    this.#fill();
  }

  /** Opens a line, and brings it into sight. */
  show(index: number): void {
    if (!this.#rows.has(index)) {
      this.#all = true;
      this.#fill();
    }
    const row = this.#rows.get(index);
    if (!row) {
      return;
    }
    this.#setOpen(index, true);
    this.mark(index);
    row.scrollIntoView({ block: "center", behavior: "auto" });
    row.focus({ preventScroll: true });
  }

  /** Shows which line was chosen, without going there. */
  mark(index: number): void {
    for (const [other, row] of this.#rows) {
      row.classList.toggle("chosen", other === index);
    }
  }

  #how(): HTMLElement {
    const text = inEditor ? "Click a line to go to it." : "Open a line for its code, its numbers and its kernels.";
    return make("span", { class: "note" }, text);
  }

  #fill(): void {
    const column = this.#columns.find(({ key }) => key === this.#sort.key) ?? this.#columns[0];
    if (!column || !this.#value.lines.length) {
      this.#more.hidden = true;
      return;
    }
    for (const cell of this.element.querySelectorAll("thead th")) {
      const sorted = (cell as HTMLElement).dataset["key"] === column.key;
      cell.setAttribute("aria-sort", sorted ? (this.#sort.down ? "descending" : "ascending") : "none");
    }
    const order = this.#value.lines.map((line, index) => ({ index, by: column.of(line) }));
    const way = this.#sort.down ? -1 : 1;
    order.sort((a, b) => {
      const first =
        typeof a.by === "number" && typeof b.by === "number"
          ? a.by - b.by
          : String(a.by).localeCompare(String(b.by), "en", { numeric: true });
      return way * first || a.index - b.index;
    });
    const shown = this.#all ? order : order.slice(0, MOST_ROWS);
    this.#more.hidden = shown.length === order.length;
    this.#more.textContent = `Show ${order.length - shown.length} more lines`;
    this.#rows.clear();
    const rows: Node[] = [];
    for (const { index } of shown) {
      rows.push(this.#row(index));
      if (this.#open.has(index)) {
        rows.push(this.#details(index));
      }
    }
    this.#body.replaceChildren(...rows);
  }

  #row(index: number): HTMLTableRowElement {
    const value = this.#value;
    const line = value.lines[index] as Line;
    const open = this.#open.has(index);
    const toggle = make(
      "button",
      {
        type: "button",
        class: "toggle",
        "aria-expanded": String(open),
        "aria-label": `Details of ${placeOf(value, line)}`,
        tabindex: "-1",
      },
      open ? "▾" : "▸",
    );
    toggle.addEventListener("click", (event) => {
      event.stopPropagation();
      this.#setOpen(index, !this.#open.has(index));
    });
    const code = codeOf(value, line) || line.function || "";
    const place = make(
      "td",
      { class: "place" },
      make(
        "div",
        {},
        toggle,
        make("span", { class: "where" }, placeOf(value, line)),
        make("code", {}, clip(code, 120)),
      ),
    );
    const row = make("tr", { class: "line", tabindex: "0", "data-line": String(index) }, place, ...this.#cells(line));
    row.addEventListener("click", () => this.#choose(index));
    this.#rows.set(index, row);
    return row;
  }

  #cells(line: Line): HTMLElement[] {
    const value = this.#value;
    const time = (us: number | null, why = "") =>
      make("td", { class: "number" }, us == null ? missing(why) : us > 0 ? showUs(us) : DASH);
    const bar = make("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${((100 * (line.share ?? 0)) / this.#mostShare).toFixed(1)}%`;
    const verdict = line.free ? "free here" : verdictName(line.verdict);
    const judged = make("td", { class: "verdict" });
    const paint = () =>
      judged.replaceChildren(
        ...(line.verdict ? [swatch(line.free ? "unknown" : verdictName(line.verdict)), verdict] : [DASH]),
      );
    onTheme(paint);
    paint();
    const roof =
      line.roof_ratio == null
        ? missing(line.why_no_work ?? "its verdict needs none")
        : make("span", {}, showShare(line.roof_ratio), badge(line.verdict_known));
    const cells = [
      this.#time(line),
      make(
        "td",
        { class: "number share" },
        bar,
        make("span", {}, line.share == null || !line.us ? DASH : showShare(line.share)),
      ),
      make("td", { class: "number roof" }, roof),
      judged,
      reasonCell(line),
    ];
    if (value.on_gpu) {
      const waits = [time(line.wait_us), time(line.idle_us)];
      for (const cell of waits) {
        cell.classList.add("waits");
      }
      cells.splice(1, 0, ...waits);
    }
    return cells;
  }

  /** The whole, and below it what of it is forward, backward, and forward again. */
  #time(line: Line): HTMLElement {
    if (!line.us) {
      return make("td", { class: "number" }, DASH);
    }
    const passes = [
      showUs(line.forward_us),
      line.backward_us > 0 && `${showUs(line.backward_us)} bwd`,
      line.recompute_us > 0 && `${showUs(line.recompute_us)} again`,
    ].filter(Boolean);
    return make(
      "td",
      { class: "number" },
      showUs(line.us),
      passes.length > 1 && make("div", { class: "small" }, passes.join(" + ")),
    );
  }

  #setOpen(index: number, open: boolean): void {
    const row = this.#rows.get(index);
    if (!row || open === this.#open.has(index)) {
      return;
    }
    const toggle = row.querySelector(".toggle");
    toggle?.setAttribute("aria-expanded", String(open));
    if (toggle) {
      toggle.textContent = open ? "▾" : "▸";
    }
    if (open) {
      this.#open.add(index);
      row.after(this.#details(index));
    } else {
      this.#open.delete(index);
      row.nextElementSibling?.remove();
    }
  }

  #choose(index: number): void {
    const line = this.#value.lines[index] as Line;
    if (inEditor) {
      reveal(this.#value.files[line.file] ?? "", line.line);
    } else {
      this.#setOpen(index, !this.#open.has(index));
    }
  }

  #key(event: KeyboardEvent): void {
    const row = (event.target as HTMLElement).closest<HTMLTableRowElement>("tr.line");
    const index = Number(row?.dataset["line"]);
    if (!row || event.target !== row) {
      return;
    }
    const rows = [...this.#rows.values()];
    const place = rows.indexOf(row);
    switch (event.key) {
      case "ArrowDown":
        rows[place + 1]?.focus();
        break;
      case "ArrowUp":
        rows[place - 1]?.focus();
        break;
      case "ArrowRight":
        this.#setOpen(index, true);
        break;
      case "ArrowLeft":
        this.#setOpen(index, false);
        break;
      case "Enter":
      case " ":
        this.#choose(index);
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  // --- an opened line -------------------------------------------------------------------------

  #details(index: number): HTMLTableRowElement {
    const value = this.#value;
    const line = value.lines[index] as Line;
    const path = value.files[line.file] ?? "";
    const parts: Node[] = [];
    if (line.reason) {
      parts.push(
        make(
          "p",
          {},
          make("strong", {}, line.free ? "free here" : verdictName(line.verdict)),
          ` ${line.reason.replace(/^free here, /, "")} `,
          badge(line.verdict_known),
        ),
      );
    }
    if (line.advice) {
      parts.push(make("p", { class: "advice" }, `→ ${line.advice}`));
    }
    for (const finding of line.findings) {
      parts.push(make("p", {}, make("strong", {}, finding.rule), ` ${finding.message}`));
    }
    const inside = make("div", { class: "columns" }, this.#excerpt(line), this.#numbers(line));
    const link = inEditor
      ? null
      : make("a", { href: editorLink(path, line.line), class: "open" }, `Open ${placeOf(value, line)} in VS Code`);
    const kernels = this.#kernels.get(index) ?? [];
    const all = make("div", { class: "inside" }, ...parts, inside, link);
    if (kernels.length) {
      all.append(this.#kernelTable(kernels));
    }
    return make("tr", { class: "details" }, make("td", { colspan: String(this.#columns.length) }, all));
  }

  #excerpt(line: Line): HTMLElement {
    const code = this.#value.code[line.file] ?? {};
    const list = make("ol", { class: "excerpt" });
    for (let number = line.line - 3; number <= line.line + 3; number++) {
      const text = code[String(number)];
      if (text !== undefined) {
        const item = make(
          "li",
          { class: number === line.line ? "this" : "" },
          make("span", { class: "n" }, String(number)),
          make("code", {}, text || " "),
        );
        list.append(item);
      }
    }
    if (!list.childElementCount) {
      return make("p", { class: "note" }, "The code was not kept in this recording.");
    }
    return list;
  }

  #numbers(line: Line): HTMLElement {
    const per = this.#value.step_count ? " a step" : "";
    const rows = [
      {
        name: this.#value.on_gpu ? "GPU time" : "CPU time",
        text: `${showUs(line.us)}${per}`,
        known: line.known as string | null,
      },
      ...(line.launch_count
        ? [{ name: "launches", text: showNumber(line.launch_count) + per, known: "measured" }]
        : []),
      ...(line.wait_us ? [{ name: "waits", text: `${showUs(line.wait_us)}${per}`, known: "measured" }] : []),
      ...Object.entries(line.idle).map(([cause, us]) => ({
        name: `GPU computes nothing: ${cause}`,
        text: `${showUs(us)}${per}`,
        known: this.#value.step.plain ? "estimated" : "measured",
      })),
      ...workFacts(line.work, line.why_no_work, this.#value.step_count || 1),
    ];
    return make(
      "table",
      { class: "facts" },
      ...rows.map(({ name, text, known }) =>
        make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, text), make("td", { class: "how" }, known)),
      ),
    );
  }

  #kernelTable(kernels: readonly Kernel[]): HTMLElement {
    const titles = [
      "kernel",
      "operator",
      this.#value.step_count ? "launches a step" : "launches",
      "each",
      this.#value.step_count ? "GPU a step" : "GPU",
      "of roof",
      "verdict",
      "reason",
    ];
    const rows = kernels.slice(0, MOST_KERNELS).map((kernel) => {
      const name = this.#value.names[kernel.name] ?? "";
      return make(
        "tr",
        {},
        make("td", { class: "kernel" }, make("code", { title: name }, clip(shortName(name), 46))),
        make("td", {}, `${kernel.op ?? DASH}${kernel.backward ? " (backward)" : ""}`),
        make("td", { class: "number" }, showNumber(kernel.launch_count)),
        make("td", { class: "number" }, showUs(kernel.each_us)),
        make("td", { class: "number" }, showUs(kernel.us)),
        make(
          "td",
          { class: "number" },
          kernel.roof_ratio == null
            ? missing(kernel.why_no_work ?? "not known")
            : make("span", {}, showShare(kernel.roof_ratio), badge(kernel.verdict_known)),
        ),
        make("td", { class: "verdict" }, verdictName(kernel.verdict)),
        reasonCell(kernel),
      );
    });
    const left = kernels.length - rows.length;
    return make(
      "div",
      { class: "wide" },
      make(
        "table",
        { class: "table kernels" },
        make("thead", {}, make("tr", {}, ...titles.map((title) => make("th", { scope: "col" }, title)))),
        make("tbody", {}, ...rows),
      ),
      left > 0 && make("p", { class: "note" }, `${left} more kernels left out`),
    );
  }
}

/** Its first lines; the whole is shown to who points there, and below the opened line. */
function reasonCell({ reason }: Judged): HTMLElement {
  const text = reason?.replace(/^free here, /, "") ?? "";
  return make("td", { class: "reason", title: text }, make("div", {}, text));
}

function columnsOf(value: Value): Column[] {
  const per = value.step_count ? " a step" : "";
  const device = value.on_gpu ? "GPU" : "CPU";
  const column = (key: string, title: string, hint: string, number: boolean, of: (line: Line) => number | string) => ({
    key,
    title,
    hint,
    number,
    of,
  });
  const columns = [
    column("place", "line", "Sort by file and line", false, (line) => placeOf(value, line)),
    column("us", `${device}${per}`, `${device} time${per}, forward and backward, measured`, true, (line) => line.us),
    column("share", `of ${device}`, `Share of all ${device} time, measured`, true, (line) => line.share ?? -1),
    column(
      "roof",
      "of roof",
      "Achieved rate as a share of the roof at this intensity",
      true,
      (line) => line.roof_ratio ?? -1,
    ),
    column("verdict", "verdict", "What limits the line", false, (line) => verdictName(line.verdict)),
    column("reason", "why", "The numbers behind the verdict", false, (line) => line.reason ?? ""),
  ];
  if (value.on_gpu) {
    columns.splice(
      2,
      0,
      column(
        "wait",
        "CPU waits",
        `How long the CPU was blocked here${per}, measured`,
        true,
        (line) => line.wait_us ?? -1,
      ),
      column(
        "idle",
        "GPU idles",
        `How long the GPU had nothing to do because of the line${per}`,
        true,
        (line) => line.idle_us ?? -1,
      ),
    );
  }
  return columns;
}
