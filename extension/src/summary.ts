/** A profile's summary where there is little room. */

/** "step 10.5 ms · GPU 61 %" of "step 10.5 ms (12 ms while recorded) · GPU busy 6.4 ms (61 %) · ...". */
export function shorten(summary: string): string {
  const step = /^step [\d.,]+ \S+/.exec(summary)?.[0];
  const busy = /GPU busy [^(·]*\(([\d.,]+ %)\)/.exec(summary)?.[1];
  return step ? [step, ...(busy ? [`GPU ${busy}`] : [])].join(" · ") : (summary.split(/ · |: /)[0] ?? summary);
}
