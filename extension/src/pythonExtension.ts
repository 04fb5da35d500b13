/** Asks the Python extension (ms-python.python), where there is one, what it has chosen. */

import { type Disposable, type Event, type Extension, extensions, type Uri } from "vscode";

/** The part of its API that is used here; see @vscode/python-extension. */
interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: Uri): { readonly path: string };
    resolveEnvironment(
      environment: { readonly path: string } | string,
    ): Promise<{ readonly executable: { readonly uri: Uri | undefined } } | undefined>;
    getEnvironmentVariables(resource?: Uri): Readonly<Record<string, string | undefined>>;
    readonly onDidChangeActiveEnvironmentPath: Event<unknown>;
  };
}

/** The interpreter that is selected for a file or folder. */
export async function selectedInterpreter(resource: Uri | undefined): Promise<string | undefined> {
  const environments = (await pythonApi())?.environments;
  try {
    const resolved = await environments?.resolveEnvironment(environments.getActiveEnvironmentPath(resource));
    return resolved?.executable.uri?.fsPath;
  } catch {
    return undefined; // An environment that was deleted, say: then there are other Pythons.
  }
}

/** The variables that a Python run there would get: the editor's own with the env file's over them. */
export async function environmentVariables(
  resource: Uri,
): Promise<Readonly<Record<string, string | undefined>> | undefined> {
  return (await pythonApi())?.environments.getEnvironmentVariables(resource);
}

/** Calls back whenever another interpreter is selected. */
export async function onInterpreterSelected(callback: () => void): Promise<Disposable | undefined> {
  return (await pythonApi())?.environments.onDidChangeActiveEnvironmentPath(callback);
}

/** Starting may take it long, or fail; neither may keep rooflint from starting. */
async function pythonApi(): Promise<PythonApi | undefined> {
  const extension: Extension<PythonApi> | undefined = extensions.getExtension("ms-python.python");
  if (!extension) {
    return undefined;
  }
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), 10_000);
  });
  try {
    const api = await Promise.race([extension.activate(), patience]);
    return api?.environments ? api : undefined;
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
