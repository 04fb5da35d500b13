/*!
The plots are drawn with uPlot 1.6.32 (https://github.com/leeoniya/uPlot):

The MIT License (MIT)

Copyright (c) 2022 Leon Sorokin

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in
all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
THE SOFTWARE.
*/
/** Builds the page from the value that lies in it. */

import "uplot/dist/uPlot.min.css";
import "./page.css";
import { make } from "./dom";
import { inEditor, recall, remember, reveal } from "./host";
import { pointsOf, type View } from "./points";
import { Roofline } from "./roofline";
import { summary } from "./summary";
import { Table } from "./table";
import { watchTheme } from "./theme";
import { Timeline } from "./timeline";
import type { Line, Value } from "./value";

watchTheme();
const page = document.getElementById("page") as HTMLElement;
const value = JSON.parse(document.getElementById("value")?.textContent ?? "{}") as Value;

const table = new Table(value);

function choose(index: number): void {
  const line = value.lines[index] as Line;
  if (inEditor) {
    reveal(value.files[line.file] ?? "", line.line);
    table.mark(index);
  } else {
    table.show(index);
  }
}

/** Lines, unless kernels tell more of the time. */
function firstView(): View {
  const remembered = recall().view;
  const [lines, kernels] = [pointsOf(value, "lines").ratio, pointsOf(value, "kernels").ratio];
  return remembered ?? (!value.lines.length || (lines < 0.5 && kernels > lines) ? "kernels" : "lines");
}

const roofline = new Roofline(value, firstView(), choose, (view) => remember({ view }));
const timeline = new Timeline(value, choose);
page.replaceChildren(
  summary(value, choose),
  roofline.element,
  timeline.element,
  table.element,
  ...(value.notes.length
    ? [
        make(
          "section",
          { class: "notes", "aria-label": "Notes" },
          make("h2", {}, "Notes"),
          make("ul", {}, ...value.notes.map((note) => make("li", {}, note))),
        ),
      ]
    : []),
  make("footer", {}, footer()),
);
roofline.start();
timeline.start();

// The editor asks for a line that a link named.
window.addEventListener("message", (event) => {
  const message: unknown = event.data;
  if (typeof message === "object" && message !== null && "type" in message && message.type === "show") {
    const { path, line } = message as { path?: unknown; line?: unknown };
    const index = value.lines.findIndex((each) => value.files[each.file] === path && each.line === line);
    if (index >= 0) {
      table.show(index);
    }
  }
});

function footer(): string {
  const parts = [value.made_by];
  if (value.peaks) {
    parts.push(`peaks: ${value.peaks.source} (${value.peaks.known})`);
  }
  parts.push("measured: a clock in the run · ncu: hardware counters · estimated: from shapes and peaks");
  return parts.join(" · ");
}
