/** What may stand in `[tool.rooflint]`, by what stands above the cursor. Knows no editor. */

export interface Suggestion {
  readonly text: string;
  readonly says: string;
  /** It is written as a string. */
  readonly isValue?: boolean;
}

/** The rules, each with the first sentence of its page. */
export type Rules = ReadonlyMap<string, string>;

const TABLES: readonly Suggestion[] = [
  { text: "tool.rooflint", says: "which rules are run, and on which files" },
  { text: "tool.rooflint.severity", says: "how loud a rule is, in place of what the evidence says" },
  {
    text: 'tool.rooflint.per-file."tests/"',
    says: "what some files have otherwise, by a pattern as .gitignore has them",
  },
];

const OF_FILES: readonly Suggestion[] = [
  { text: "select", says: "if not empty: only these rules are run" },
  { text: "ignore", says: "rules that are not run" },
  { text: "assume-device", says: "where tensors live of which nothing says it: gpu, cpu or unknown" },
];
const OF_PROJECTS = [...OF_FILES, { text: "exclude", says: "files and folders to leave out, as in .gitignore" }];
const SEVERITY = { text: "severity", says: "how loud a rule is, by its name" };

const DEVICES: readonly Suggestion[] = [
  { text: "unknown", says: "an information or hint (the default)" },
  { text: "gpu", says: "as what is on the GPU" },
  { text: "cpu", says: "nothing" },
];
const SEVERITIES: readonly Suggestion[] = ["error", "warning", "information", "hint"].map((text) => ({
  text,
  says: "",
}));

/** What fits at the end of a text, the beginning of a pyproject.toml; the word that is being typed is part of none. */
export function suggest(before: string, rules: Rules): readonly Suggestion[] {
  const line = before.slice(before.lastIndexOf("\n") + 1);
  if (/^\s*\[[\w."-]*$/.test(line)) {
    return TABLES;
  }
  const header = [...before.matchAll(/^[ \t]*\[([^[\]\n]+)\][ \t]*(?:#.*)?$/gm)].pop();
  const table = header?.[1]?.replace(/\s/g, "") ?? "";
  const inside = /^tool\.rooflint(\.severity|\.per-file\..+)?$/.exec(table);
  if (!header || !inside) {
    return [];
  }
  const text = before.slice(header.index + header[0].length).replace(/#.*$/gm, "");
  const [, key, value] = /(?:^|\n)[ \t]*([\w-]+)[ \t]*=[ \t]*([^=]*)$/.exec(text) ?? [];
  const names = [...rules].map(([name, says]) => ({ text: name, says }));
  // A list that is open, or a string that is not closed.
  if (key && value !== undefined && /^(?:\[[^\]]*|["']?[\w-]*)$/.test(value)) {
    const values =
      key === "assume-device"
        ? DEVICES
        : key === "select" || key === "ignore"
          ? names
          : inside[1] === ".severity"
            ? SEVERITIES
            : [];
    return values.map((each) => ({ ...each, isValue: true }));
  }
  if (!/^\s*[\w-]*$/.test(line)) {
    return [];
  }
  const known = inside[1] === ".severity" ? names : inside[1] ? [...OF_FILES, SEVERITY] : OF_PROJECTS;
  return known.filter((each) => !new RegExp(`^[ \\t]*${each.text}[ \\t]*=`, "m").test(text));
}

/** The rules of `rules.md`. */
export function rulesOf(page: string): Rules {
  const sections = page.split(/^## /m).slice(1);
  return new Map(
    sections.map((section) => {
      const [name = "", ...rest] = section.split("\n");
      return [name.trim(), rest.join("\n").trim().split("\n\n")[0]?.replace(/\s+/g, " ") ?? ""];
    }),
  );
}
