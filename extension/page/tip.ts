/** The box that shows numbers beside the pointer, and tells them to those who do not see it. */

import { make } from "./dom";
import type { Fact } from "./points";

export class Tip {
  readonly #box = make("div", { class: "tip", hidden: "" });

  constructor() {
    document.body.append(this.#box);
  }

  show(x: number, y: number, title: string, code: string, facts: readonly Fact[], hint = ""): void {
    const rows = facts.map(({ name, text, known }) =>
      make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, text), make("td", { class: "how" }, known)),
    );
    this.#box.replaceChildren(
      make("strong", {}, title),
      ...(code ? [make("code", {}, code)] : []),
      make("table", {}, ...rows),
      ...(hint ? [make("em", {}, hint)] : []),
    );
    this.#box.hidden = false;
    const { offsetWidth, offsetHeight } = this.#box;
    const [right, bottom] = [document.documentElement.clientWidth, document.documentElement.clientHeight];
    const left = x + 16 + offsetWidth < right ? x + 16 : Math.max(4, x - offsetWidth - 16);
    const top = y + 16 + offsetHeight < bottom ? y + 16 : Math.max(4, y - offsetHeight - 16);
    this.#box.style.left = `${left + window.scrollX}px`;
    this.#box.style.top = `${top + window.scrollY}px`;
  }

  hide(): void {
    this.#box.hidden = true;
  }
}

/** What a screen reader is told when something is selected by key. */
export function announcer(): { element: HTMLElement; say: (text: string) => void } {
  const element = make("div", { class: "told", "aria-live": "polite", role: "status" });
  return {
    element,
    say: (text) => {
      element.textContent = text;
    },
  };
}
