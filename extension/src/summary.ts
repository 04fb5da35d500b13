/** Sentences for the status bar and notifications. */

/** "step 10.5 ms · GPU 61 %" of "step 10.5 ms (12 ms while recorded) · GPU busy 6.4 ms (61 %) · ...". */
export function shorten(summary: string): string {
  const step = /^step [\d.,]+ \S+/.exec(summary)?.[0];
  const busy = /GPU busy [^(·]*\(([\d.,]+ %)\)/.exec(summary)?.[1];
  return step ? [step, ...(busy ? [`GPU ${busy}`] : [])].join(" · ") : (summary.split(/ · |: /)[0] ?? summary);
}

/** How many of a recording's files are those of the project, before what it says; nothing of one that brought none. */
export function whatIsHere(here: number, lost: number): string {
  const count = here + lost;
  if (lost === 0) {
    return count === 0 ? "" : count === 1 ? "Its file is here. " : `All of its ${count} files are here. `;
  }
  return `${here} of its ${count} files ${here === 1 ? "is" : "are"} here. `;
}
