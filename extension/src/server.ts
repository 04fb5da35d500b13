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
import { LanguageClient, State } from "vscode-languageclient/node";
import type { Profiler } from "./profile";
import { findServerPython, NoPython } from "./python";
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
      this.#log.info(`Python ${python.version.join(".")} at ${python.executable} runs the server.`);
      this.#client = this.#createClient(python.executable);
      this.#profiler.listen(this.#client);
      await this.#client.start();
      this.#status.ready();
    } catch (error) {
      this.#client = undefined;
      this.#status.failed();
      const message = error instanceof Error ? error.message : String(error);
      this.#log.error(message);
      void offerHelp(error instanceof NoPython ? message : `rooflint's server did not start: ${message}`, this.#log);
    }
  }

  #createClient(python: string): LanguageClient {
    return new LanguageClient(
      "rooflint",
      "rooflint server",
      {
        command: python,
        // Isolated: the user's PYTHONPATH is for their scripts. The launcher knows where our packages lie.
        args: ["-I", this.#context.asAbsolutePath("server/launch.py")],
        options: { cwd: this.#context.extensionPath },
      },
      {
        documentSelector: [{ scheme: "file", language: "python" }],
        diagnosticCollectionName: "rooflint",
        outputChannel: this.#log,
        stdioOptions: {
          stdout: (stream, log) => stream.on("data", (text) => log.info(String(text).trimEnd())),
          stderr: (stream, log) => stream.on("data", (text) => log.info(String(text).trimEnd())),
        },
        synchronize: { configurationSection: "rooflint" },
        markdown: { isTrusted: { enabledCommands: ["rooflint.profileFile", "rooflint.showOutput"] } },
      },
    );
  }

  async #stop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.dispose().catch((error) => this.#log.warn(`The server did not stop in order: ${error}`));
  }
}

async function offerHelp(message: string, log: LogOutputChannel): Promise<void> {
  const choice = await window.showErrorMessage(message, "Open Setting", "Show Log");
  if (choice === "Open Setting") {
    // On a remote machine these settings are that machine's, and the plain page would not show them.
    const page = env.remoteName ? "workbench.action.openRemoteSettings" : "workbench.action.openSettings";
    await commands.executeCommand(page, { query: "rooflint.serverPython" });
  } else if (choice === "Show Log") {
    log.show();
  }
}
