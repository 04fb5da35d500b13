/** The language client: what it watches, where it logs, and what it does when the server's process ends. */

import { type LogOutputChannel, workspace } from "vscode";
import { CloseAction, type CloseHandlerResult, ErrorAction, LanguageClient, State } from "vscode-languageclient/node";
import { ClosedNotebooks } from "./closedNotebooks";
import { Crashes } from "./crashes";
import { RULE_PAGE } from "./rulePages";

export class Client extends LanguageClient {
  /** `stayOff` is called with the sentence to show when the server has ended too often. */
  constructor(python: string, launcher: string, cwd: string, log: LogOutputChannel, stayOff: (why: string) => void) {
    const crashes = new Crashes();
    const closed = new ClosedNotebooks();
    let wasUp = false;
    super(
      "rooflint",
      "rooflint",
      {
        command: python,
        args: ["-I", launcher], // Isolated: the user's PYTHONPATH is for their scripts.
        options: { cwd },
      },
      {
        documentSelector: [
          { scheme: "file", language: "python" },
          { notebook: "jupyter-notebook", language: "python" },
        ],
        diagnosticCollectionName: "rooflint",
        outputChannel: log,
        stdioOptions: {
          stdout: (stream) => stream.on("data", (text) => log.info(String(text).trimEnd())),
          stderr: (stream) => stream.on("data", (text) => log.info(String(text).trimEnd())),
        },
        synchronize: { configurationSection: "rooflint" },
        initializationOptions: {
          profileCommand: "rooflint.profileFile",
          rooflineCommand: "rooflint.showRoofline",
          profileAgainCommand: "rooflint.profileAgain",
          pageCommand: "rooflint.showRule",
          traceCommand: "rooflint.showTrace",
          rulePage: RULE_PAGE,
          heat: true,
          closedCells: true,
          trusted: workspace.isTrusted,
        },
        markdown: {
          isTrusted: {
            enabledCommands: ["profileFile", "showRoofline", "showRule", "showTrace"].map((name) => `rooflint.${name}`),
          },
        },
        middleware: {
          provideWorkspaceDiagnostics: (known, token, report, next) => {
            closed.learn();
            return next(known, token, (part) =>
              report(part && { items: part.items.flatMap((each) => closed.spread(each)) }),
            );
          },
        },
        initializationFailedHandler: () => false,
        errorHandler: {
          // A broken pipe is followed by the end of the process, which is where something is done.
          error: () => ({ action: ErrorAction.Continue }),
          closed: () => afterEnd(),
        },
      },
    );
    this.onDidChangeState(({ newState }) => {
      wasUp ||= newState === State.Running;
    });

    function afterEnd(): CloseHandlerResult {
      if (!wasUp) {
        return { action: CloseAction.DoNotRestart, message: "The server ended while it started." };
      }
      if (crashes.forgive(Date.now())) {
        return { action: CloseAction.Restart, message: "The server ended, and is started again.", handled: true };
      }
      stayOff("rooflint's server keeps ending and stays off: see its log, then run Rooflint: Restart Server.");
      return { action: CloseAction.DoNotRestart, message: "The server keeps ending and stays off." };
    }
  }

  /** Logs, and shows nothing: what the user should know is told once, in a sentence, where it is handled. */
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}
