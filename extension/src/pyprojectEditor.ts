/** Completion of `[tool.rooflint]` in pyproject.toml, with or without an extension for TOML. */

import * as path from "node:path";
import { CompletionItem, CompletionItemKind, type Disposable, languages, Uri, workspace } from "vscode";
import { rulesOf, suggest } from "./pyproject";

export function registerPyproject(docs: string): Disposable {
  const page = Uri.file(path.join(docs, "rules.md"));
  return languages.registerCompletionItemProvider(
    { scheme: "file", pattern: "**/pyproject.toml" },
    {
      provideCompletionItems: async (document, position) => {
        const before = document.getText().slice(0, document.offsetAt(position));
        const rules = rulesOf(Buffer.from(await workspace.fs.readFile(page)).toString("utf8"));
        const word = document.getWordRangeAtPosition(position, /[\w."-]+/);
        const isOpen = /["'][\w-]*$/.test(before);
        return suggest(before, rules).map(({ text, says, isValue }) => {
          const item = new CompletionItem(text, CompletionItemKind.Property);
          item.documentation = says;
          item.insertText = isValue && !isOpen ? `"${text}"` : text;
          if (word && !isValue) {
            item.range = word.with(word.start, position);
          }
          return item;
        });
      },
    },
    "[",
    '"',
  );
}
