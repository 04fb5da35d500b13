/** Light or dark: as the editor is, else as the reader's system wants it. */

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners: (() => void)[] = [];
let colors: CSSStyleDeclaration | undefined;

export function watchTheme(): void {
  apply();
  dark.addEventListener("change", apply);
  new MutationObserver(apply).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  // The editor's own colours come as variables on the root element.
  new MutationObserver(told).observe(document.documentElement, { attributes: true, attributeFilter: ["style"] });
}

export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

/** A colour of the style sheet by its variable. */
export function color(name: string): string {
  colors ??= getComputedStyle(document.documentElement);
  return colors.getPropertyValue(`--${name}`).trim();
}

export const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

function apply(): void {
  const own = document.body.classList;
  const inEditor = [...own].some((name) => name.startsWith("vscode-"));
  const isDark = inEditor
    ? own.contains("vscode-dark") ||
      (own.contains("vscode-high-contrast") && !own.contains("vscode-high-contrast-light"))
    : dark.matches;
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
  document.documentElement.dataset["host"] = inEditor ? "editor" : "browser";
  told();
}

function told(): void {
  colors = undefined;
  for (const listener of listeners) {
    listener();
  }
}
