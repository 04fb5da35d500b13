/** What may stand in a setting for something that differs from machine to machine. */

/** Fills in `${workspaceFolder}`, `${env:NAME}` and a leading `~`. */
export function fillIn(
  text: string,
  workspaceFolder: string | undefined,
  variables: Readonly<Record<string, string | undefined>>,
  home: string,
): string {
  return text
    .replace(/^~(?=$|[/\\])/, () => home)
    .replace(/\$\{workspaceFolder\}/g, () => workspaceFolder ?? "")
    .replace(/\$\{env:(\w+)\}/g, (_, name: string) => variables[name] ?? "");
}
