/** A command line's words, as a shell would split and show them. */

/** Splits at spaces that are not quoted; `\` keeps the next character. */
export function splitWords(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let place = 0; place < line.length; place++) {
    const sign = line[place] ?? "";
    if (quote ? sign === quote : sign === '"' || sign === "'") {
      quote = quote ? undefined : sign;
      word ??= "";
    } else if (sign === "\\" && quote !== "'" && /["'\\ ]/.test(line[place + 1] ?? "")) {
      word = (word ?? "") + (line[++place] ?? "");
    } else if (!quote && /\s/.test(sign)) {
      if (word !== undefined) {
        words.push(word);
      }
      word = undefined;
    } else {
      word = (word ?? "") + sign;
    }
  }
  return word === undefined ? words : [...words, word];
}

/** Words as one would type them. */
export function joinWords(words: readonly string[]): string {
  return words.map((word) => (/^[^\s"'\\]+$/.test(word) ? word : `"${word.replace(/["\\]/g, "\\$&")}"`)).join(" ");
}
