/** Text from files and traces for a notification, where VS Code would make links of it that run commands. */

/** `[text](command:…)` as it is written: names of files and kernels are anybody's choice. */
export function plain(text: string): string {
  return text.replace(/\]\(/g, "] (");
}
