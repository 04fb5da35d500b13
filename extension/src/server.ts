/** The language server: starts it on a Python that is found, and stops it. */

import {
  commands,
  type Disposable,
  type ExtensionContext,
  env,
  type LogOutputChannel,
  window,
  workspace,
} from "vscode";
import { type LanguageClient, State } from "vscode-languageclient/node";
import { Client } from "./client";
import { notices } from "./notices";
import type { Profiler } from "./profile";
import { findServerPython, type Python } from "./python";
import { selectedInterpreter } from "./pythonExtension";
import { settingsFor } from "./settings";
import type { Status } from "./status";

export class Server implements Disposable {
  readonly #context: ExtensionContext;
  readonly #status: Status;
  readonly #log: LogOutputChannel;
  readonly #profiler: Profiler;
  #client: LanguageClient | undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(context: ExtensionContext, status: Status, profiler: Profiler) {
    this.#context = context;
    this.#status = status;
    this.#profiler = profiler;
    this.#log = window.createOutputChannel("rooflint server", { log: true });
  }

  /** Starts the server, or ends the one that runs and starts anew. One turn at a time. */
  restart(): Promise<void> {
    this.#turn = this.#turn.then(async () => {
      await this.#stop();
      await this.#start();
    });
    return this.#turn;
  }

  /** Starts the server if there is none: something has changed that may have been the reason. */
  async retry(): Promise<void> {
    if (!(await this.running())) {
      await this.restart();
    }
  }

  /** The running server, once it is up; undefined if there is none, which was said when it failed to start. */
  async running(): Promise<LanguageClient | undefined> {
    await this.#turn;
    return this.#client?.state === State.Running ? this.#client : undefined;
  }

  /** Ends the server, and waits until it has ended. */
  stop(): Promise<void> {
    this.#turn = this.#turn.then(() => this.#stop());
    return this.#turn;
  }

  showLog(): void {
    this.#log.show();
  }

  dispose(): void {
    this.#log.dispose();
  }

  async #start(): Promise<void> {
    this.#status.starting();
    try {
      const python = await findServerPython(
        settingsFor(undefined).serverPython,
        await selectedInterpreter(workspace.workspaceFolders?.[0]?.uri),
        {
          platform: process.platform,
          searchPath: process.env["PATH"] ?? "",
          untrustedFolders: workspace.isTrusted ? [] : (workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath),
        },
      );
      await this.#startOn(python);
    } catch (error) {
      this.#client = undefined;
      this.#status.failed();
      const message = error instanceof Error ? error.message : String(error);
      this.#log.error(message);
      void this.#offerHelp(message);
    }
  }

  async #startOn({ executable, version }: Python): Promise<void> {
    this.#log.info(`Python ${version.join(".")} at ${executable} runs the server.`);
    const client = new Client(
      executable,
      this.#context.asAbsolutePath("server/launch.py"),
      this.#context.extensionPath,
      this.#log,
      (why) => void this.#offerHelp(why),
    );
    this.#client = client;
    this.#profiler.listen(client);
    client.onDidChangeState(({ newState }) => this.#show(newState));
    try {
      await client.start();
    } catch (error) {
      this.#log.error(String(error));
      throw new Error(`rooflint's server did not start on ${executable}: see its log, or name another Python.`);
    }
  }

  /** It may also end, and be started again by the client, between our own turns. */
  #show(state: State): void {
    switch (state) {
      case State.Starting:
        this.#status.starting();
        break;
      case State.Running:
        this.#status.ready();
        break;
      case State.StartFailed:
      case State.Stopped:
        this.#status.failed();
        break;
    }
  }

  async #stop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.dispose().catch((error) => this.#log.warn(`The server did not stop in order: ${error}`));
  }

  async #offerHelp(message: string): Promise<void> {
    const choice = await notices.fail(message, "Open Setting", "Show Log");
    if (choice === "Open Setting") {
      // On a remote machine these settings are that machine's, and the plain page would not show them.
      const page = env.remoteName ? "workbench.action.openRemoteSettings" : "workbench.action.openSettings";
      await commands.executeCommand(page, { query: "rooflint.serverPython" });
    } else if (choice === "Show Log") {
      this.#log.show();
    }
  }
}
