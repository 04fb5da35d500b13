/**
 * The page of each rule and verdict under an address of its own, which the link of a diagnostic's code
 * opens: VS Code follows no `command:` there. `configurationDefaults` has such addresses shown as Markdown.
 */

import * as path from "node:path";
import { type Disposable, type TextDocumentContentProvider, Uri, workspace } from "vscode";

const SCHEME = "rooflint-rule";

/** What `{code}` in it makes of a rule's name. */
export const RULE_PAGE = `${SCHEME}:/{code}.md`;

export function pageOf(rule: string): Uri {
  return Uri.parse(RULE_PAGE.replace("{code}", rule));
}

/** A rule's section of `rules.md`, a whole page of the docs by its name, or else what is said of all verdicts. */
export function registerRulePages(docs: string): Disposable {
  const read = async (name: string) =>
    Buffer.from(await workspace.fs.readFile(Uri.file(path.join(docs, `${name}.md`)))).toString("utf8");
  const provider: TextDocumentContentProvider = {
    provideTextDocumentContent: async ({ path: file }) => {
      const name = path.posix.basename(file, ".md");
      const sections = (await read("rules")).split(/^(?=## )/m);
      const section = sections.find((text) => text.startsWith(`## ${name}\n`));
      return section ?? read(name).catch(() => read("verdicts"));
    },
  };
  return workspace.registerTextDocumentContentProvider(SCHEME, provider);
}
