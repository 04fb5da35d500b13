/** Elements, made of text that never acts: nothing here reads markup. */

type Content = Node | string | null | undefined | false;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>>,
  ...content: Content[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, text] of Object.entries(attributes)) {
    element.setAttribute(name, text);
  }
  element.append(...content.filter((each): each is Node | string => Boolean(each)));
  return element;
}

/** A small word beside a number that says how it is known. */
export function badge(known: string | null | undefined): HTMLElement | null {
  return known ? make("span", { class: `known known-${known}` }, known) : null;
}

/** A dash in place of a number, with the reason why there is none. */
export function missing(why: string): HTMLElement {
  return make("span", { class: "missing", title: why, "aria-label": `not known: ${why}` }, "–");
}
