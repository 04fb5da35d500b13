/** "Profile This File": hands the server a file, an interpreter and its variables, and tells how it goes. */

import * as path from "node:path";
import {
  type CancellationToken,
  commands,
  debug,
  type OutputChannel,
  type Progress,
  ProgressLocation,
  type Uri,
  window,
  workspace,
} from "vscode";
import {
  ExecuteCommandRequest,
  type LanguageClient,
  State,
  WorkDoneProgress,
  WorkDoneProgressCancelNotification,
} from "vscode-languageclient/node";
import type { Ways } from "./arguments";
import type { FileHeat, Heat } from "./heat";
import { type FromToolbar, fileOf, notebookAround } from "./notebook";
import { notices } from "./notices";
import { plain } from "./plain";
import { commandLine, type ProfileArguments, prepareRequest, Refusal } from "./request";
import type { Server } from "./server";
import type { Status } from "./status";

interface ProfileResult {
  /** The folder that the recording lies in. */
  readonly recording: string;
  /** "step 10.5 ms · GPU busy 61 % · ..." */
  readonly summary: string;
  readonly cancelled: boolean;
  /** The script's; null: not known. */
  readonly exit_code: number | null;
  /** What is missing or was given up, a sentence each. */
  readonly notes: readonly string[];
}

/** As it was run last time or is set, and if there are several ways by the user's choice; by that in any case; as last. */
export type How = "as known" | "ask" | "again";

export class Profiler {
  readonly #output: OutputChannel;
  readonly #status: Status;
  readonly #heat: Heat;
  readonly #ways: Ways;
  /** The name of the file that is being profiled: one at a time. */
  #profiling: string | undefined;

  constructor(output: OutputChannel, status: Status, heat: Heat, ways: Ways) {
    this.#output = output;
    this.#status = status;
    this.#heat = heat;
    this.#ways = ways;
  }

  /** Takes in what the script prints, and what is known of a project once it was profiled. */
  listen(client: LanguageClient): void {
    client.onNotification("rooflint/measured", ({ root, summary }: { root: string; summary: string | null }) =>
      this.#status.measured(root, summary),
    );
    client.onNotification("rooflint/heat", (heat: FileHeat) => {
      this.#heat.show(heat);
      this.#status.fileMeasured(heat.uri, heat.summary);
    });
    client.onNotification("rooflint/output", ({ text }: { text: string }) => this.#output.append(text));
  }

  /** Profiles a file, the active editor's by default. Every way it can end is said to the user here. */
  async profileFile(server: Server, file: Uri | FromToolbar | undefined, how: How = "as known"): Promise<void> {
    try {
      const uri = fileOf(file);
      if (!workspace.isTrusted) {
        void this.#askForTrust();
        return;
      }
      if (this.#profiling) {
        throw new Refusal(`${this.#profiling} is being profiled: wait until it is done, or cancel it.`);
      }
      await this.#profile(server, uri, how);
    } catch (error) {
      if (error instanceof Refusal) {
        void notices.warn(error.message);
        return;
      }
      const message = error instanceof Error ? error.message : String(error);
      this.#output.appendLine(`\n${message}`);
      void this.#offerOutput(notices.fail(message, "Show Output"));
    }
  }

  async #profile(server: Server, file: Uri | undefined, how: How): Promise<void> {
    const fileName = file ? path.basename(file.fsPath) : "the file";
    this.#profiling = fileName;
    try {
      const uri = await savedPythonFile(file);
      refuseWhileDebugged(uri);
      const way = (how === "again" && this.#ways.last(uri)) || (await this.#ways.choose(uri, how === "ask"));
      if (!way) {
        return;
      }
      await this.#ways.remember(uri, way);
      this.#status.profiling(fileName);
      const client = await server.running();
      if (!client) {
        throw new Refusal("rooflint's server is not running, so nothing was profiled: see its log for why.");
      }
      const request = await prepareRequest(uri, way);
      this.#output.appendLine(["", commandLine(request), ...request.notes].join("\n"));
      const result = await window.withProgress(
        { location: ProgressLocation.Notification, title: plain(`Profiling ${fileName}`), cancellable: true },
        (progress, cancellation) => run(client, request.arguments, progress, cancellation),
      );
      this.#tell(fileName, result);
    } finally {
      this.#profiling = undefined;
      this.#status.profiling(undefined);
    }
  }

  /** Says what came of it; that the script failed comes before what was measured until then. */
  #tell(fileName: string, { recording, summary, cancelled, exit_code, notes }: ProfileResult): void {
    this.#output.appendLine(["", summary, ...notes, `Recorded in ${recording}`].join("\n"));
    const buttons = ["Show Problems", "Show Output"];
    if (cancelled) {
      void this.#offerOutput(notices.inform(`Cancelled; until then: ${summary}`, ...buttons));
    } else if (exit_code) {
      const failed = `${fileName} ended with exit code ${exit_code}; until then: ${summary}`;
      void this.#offerOutput(notices.warn(failed, ...buttons.reverse()));
    } else {
      void this.#offerOutput(notices.inform(summary, ...buttons));
    }
  }

  async #offerOutput(choice: Thenable<string | undefined>): Promise<void> {
    switch (await choice) {
      case "Show Output":
        this.#output.show(true);
        break;
      case "Show Problems":
        await commands.executeCommand("workbench.actions.view.problems");
        break;
    }
  }

  async #askForTrust(): Promise<void> {
    const choice = await notices.warn(
      "Profiling runs the file, so it is off until you trust this workspace.",
      "Manage Workspace Trust",
    );
    if (choice) {
      await commands.executeCommand("workbench.trust.manage");
    }
  }
}

/** Sends the request, shows the server's progress in the notification, and passes its Cancel on. */
async function run(
  client: LanguageClient,
  request: ProfileArguments,
  progress: Progress<{ message: string }>,
  cancellation: CancellationToken,
): Promise<ProfileResult> {
  const token = `rooflint.profile ${request.uri}`;
  const listening = client.onProgress(WorkDoneProgress.type, token, (value) => {
    // It begins with the command that is run.
    if (value.kind !== "end" && value.message && !cancellation.isCancellationRequested) {
      progress.report({ message: plain(value.message) });
    }
  });
  // The request itself is not cancelled: its answer is what was recorded until then.
  const cancelling = cancellation.onCancellationRequested(() => {
    progress.report({ message: "stopping, and keeping what was recorded" });
    void client.sendNotification(WorkDoneProgressCancelNotification.type, { token });
  });
  try {
    return await client.sendRequest(ExecuteCommandRequest.type, {
      command: "rooflint.server.profile",
      arguments: [request],
      workDoneToken: token,
    });
  } catch (error) {
    throw client.state === State.Running
      ? error
      : new Refusal("rooflint's server ended during the run, and with it the run: see the server's log.");
  } finally {
    cancelling.dispose();
    listening.dispose();
  }
}

/** Both would want the GPU, and the debugger slows what is to be measured. */
function refuseWhileDebugged(uri: Uri): void {
  const program = debug.activeDebugSession?.configuration["program"];
  if (typeof program === "string" && path.resolve(program) === uri.fsPath) {
    throw new Refusal(`${path.basename(uri.fsPath)} is being debugged: stop the debugger first.`);
  }
}

/** The file as it will run: on disk, in Python, and with the last edits saved. */
async function savedPythonFile(uri: Uri | undefined): Promise<Uri> {
  const document =
    (uri && notebookAround(uri)) ?? workspace.textDocuments.find((each) => each.uri.toString() === uri?.toString());
  const isText = document && "languageId" in document;
  const isPython = isText ? document.languageId === "python" : /\.(py|ipynb)$/.test(uri?.path ?? "");
  if (!uri || !isPython) {
    throw new Refusal("There is no Python file to profile: open one first.");
  }
  if (uri.scheme !== "file") {
    throw new Refusal("Save the file to disk first: only a file that Python can run can be profiled.");
  }
  if (document?.isDirty && !(await document.save())) {
    throw new Refusal(
      `${path.basename(uri.fsPath)} could not be saved, so it was not profiled: save it, then profile again.`,
    );
  }
  return uri;
}
