// The stand-alone page in a real browser: both themes, keys, clicks, hostile names, 10,000 points, no network.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { claim, PYTHON, ROOT, until } from "./harness.mjs";

const SHOTS = join(ROOT, ".cache", "editor-shots");
const folder = mkdtempSync(join(tmpdir(), "rooflint-page-"));
mkdirSync(SHOTS, { recursive: true });
const recording = join(folder, "train_h200");
execFileSync(PYTHON, ["-c", unpack(), join(ROOT, "tests/profiles/recordings/train_h200"), recording]);
const file = join(folder, "page.html");
execFileSync(PYTHON, ["-m", "rooflint", "report", recording, "--html", file], {
  env: { ...process.env, PYTHONPATH: join(ROOT, "analyzers") },
});
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"],
});

try {
  for (const colorScheme of ["light", "dark"]) {
    await withPage(file, { colorScheme }, async (page) => {
      assert.equal(await page.locator("html").getAttribute("data-theme"), colorScheme);
      assert.ok(await inked(page, ".roofline .uplot canvas"), "the roofline is drawn");
      assert.ok(await inked(page, ".timeline .uplot canvas"), "the timeline is drawn");
      await page.screenshot({ path: join(SHOTS, `page-${colorScheme}.png`), fullPage: true });
    });
    claim(`the page is drawn in the ${colorScheme} theme`);
  }

  await withPage(file, { colorScheme: "light" }, async (page) => {
    const before = await page.locator(".roofline .uplot canvas").evaluate((canvas) => canvas.toDataURL());
    await page.emulateMedia({ colorScheme: "dark" });
    await until("the canvas follows the theme", async () => {
      return (await page.locator(".roofline .uplot canvas").evaluate((canvas) => canvas.toDataURL())) !== before;
    });
    claim("it follows the theme while it is open");

    const plot = page.locator(".roofline .plot");
    await plot.focus();
    await page.keyboard.press("ArrowRight");
    const told = page.locator(".roofline [role=status]");
    assert.match(await told.textContent(), /^1 of \d+: train\.py:56\. GPU time 2\.94\sms a step .*measured.*ncu/);
    assert.match(await page.locator(".tip:visible").textContent(), /intensity.*FLOP\/B/);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.match(await told.textContent(), /^2 of \d+: train\.py:58\./);
    await page.keyboard.press("Enter");
    await page.locator("tr.details", { hasText: "return x + self.down(h)" }).waitFor();
    claim("arrow keys go from point to point, and Enter opens the line");

    const link = await page.locator("tr.details a").getAttribute("href");
    assert.equal(link, "vscode://file/home/user/project/train.py:58");
    assert.match(await page.locator("tr.details .kernels").textContent(), /aten::addmm/);
    assert.match(await page.locator("tr.details .excerpt .this").textContent(), /58\s*return x \+ self\.down\(h\)/);
    claim("an opened line shows its code, its kernels, and a link into VS Code");

    await page.locator("tr.line:focus").press("ArrowLeft");
    assert.equal(await page.locator("tr.details").count(), 0);
    await page.locator("tr.line:focus").press("ArrowUp");
    assert.equal(await page.locator("tr.line:focus").getAttribute("data-line"), "0");
    claim("rows are opened, closed and walked through by keys");

    await page.getByRole("button", { name: "GPU idles" }).click();
    assert.match(await page.locator("tr.line").first().textContent(), /train\.py:92/);
    assert.equal(await page.locator("th[data-key=idle]").getAttribute("aria-sort"), "descending");
    await page.getByRole("button", { name: "GPU idles" }).click();
    assert.equal(await page.locator("th[data-key=idle]").getAttribute("aria-sort"), "ascending");
    claim("the table is sorted by any column");

    await page.getByRole("button", { name: "kernels" }).click();
    await plot.focus();
    await page.keyboard.press("End");
    assert.match(await told.textContent(), /^(\d+) of \1: /);
    claim("kernels take the place of lines");

    await page.keyboard.press("Home");
    const ring = await page.locator(".ring").boundingBox();
    await page.mouse.move(ring.x + ring.width / 2 + 1, ring.y + ring.height / 2);
    await page.mouse.down();
    await page.mouse.up();
    await page.locator("tr.details").first().waitFor();
    claim("a click on a point opens its line");

    const timeline = page.locator(".timeline .plot");
    const shown = page.locator(".timeline [role=status]");
    await timeline.focus();
    await page.keyboard.press("0");
    assert.match(await shown.textContent(), /^0\sns to 65\.8\sms$/);
    await page.keyboard.press("+");
    await page.keyboard.press("ArrowRight");
    assert.doesNotMatch(await shown.textContent(), /^0/);
    claim("the timeline is zoomed and moved by keys");
  });

  const hostile = write("hostile", (value) => {
    const evil = `</script><img src=x onerror="document.title='gone'"><b>`;
    value.title = evil;
    value.names = value.names.map(() => evil);
    value.files = value.files.map(() => `/tmp/${evil}/javascript:alert(1)`);
    value.notes = [evil];
    for (const one of [...value.lines, ...value.kernels]) {
      Object.assign(one, { reason: evil, advice: evil, op: evil, function: evil });
    }
    value.code = value.code.map((code) => Object.fromEntries(Object.keys(code).map((number) => [number, evil])));
  });
  await withPage(
    hostile,
    {},
    async (page) => {
      await page.locator("tr.line").first().click();
      await page.locator(".roofline .plot").focus();
      await page.keyboard.press("ArrowRight");
      assert.equal(await page.locator("img, b, script:not([type]) ~ img").count(), 0);
      assert.doesNotMatch(await page.title(), /gone/);
      assert.match(await page.locator("tr.details a").getAttribute("href"), /^vscode:\/\/file\/tmp\/%3C/);
      assert.match(await page.locator("h1").textContent(), /^<\/script><img/);
      const ran = await page.evaluate(() => {
        const script = document.createElement("script");
        script.textContent = "document.title = 'gone'";
        document.body.append(script);
        return document.title;
      });
      assert.doesNotMatch(ran, /gone/);
    },
    true,
  );
  claim("names that are markup are text, and the policy lets no other script run");

  const many = write("many", (value) => {
    const [kernel, line] = [value.kernels.find(({ why_no_work }) => !why_no_work), value.lines[0]];
    value.kernels = Array.from({ length: 10_000 }, (_, number) => ({
      ...kernel,
      line: 0,
      us: 1 + (number % 97) ** 2,
      verdict: ["compute-bound", "memory-bound", "latency-bound", "overhead-bound"][number % 4],
      work: {
        ...kernel.work,
        intensity: 10 ** (-1 + (number % 100) / 25),
        flop_per_s: 10 ** (11 + Math.floor(number / 100) / 35),
      },
    }));
    value.lines = [line];
  });
  await withPage(many, {}, async (page) => {
    const started = Date.now();
    await page.getByRole("button", { name: "kernels" }).click();
    await page.locator(".roofline .uplot canvas").waitFor();
    const [zooms, moves] = await page.evaluate(async () => {
      const plot = document.querySelector(".roofline .plot");
      const over = plot.querySelector(".u-over");
      const box = over.getBoundingClientRect();
      const timed = async (count, act) => {
        const begun = performance.now();
        for (let number = 0; number < count; number++) {
          act(number);
          await new Promise(requestAnimationFrame);
        }
        return (performance.now() - begun) / count;
      };
      const key = (name) => plot.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
      const zoomed = await timed(20, (number) => key(number % 2 ? "-" : "+"));
      const moved = await timed(60, (number) => {
        const [clientX, clientY] = [box.left + 5 * number, box.top + 100 + number];
        over.dispatchEvent(new MouseEvent("mousemove", { clientX, clientY, bubbles: true }));
      });
      return [zoomed, moved];
    });
    await page.screenshot({ path: join(SHOTS, "page-10000.png") });
    claim(
      `10,000 points: shown after ${Date.now() - started} ms in all, ${zooms.toFixed(0)} ms a zoom, ${moves.toFixed(0)} ms a move`,
    );
    assert.ok(zooms < 250, `a zoom takes ${zooms} ms`);
    assert.ok(moves < 60, `a move takes ${moves} ms`);
  });
  rmSync(folder, { recursive: true });
  claim("done");
} finally {
  await browser.close();
}

/** Runs a claim about a page; what it logs, throws or asks of the network fails it. */
async function withPage(path, options, play, blocked = false) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, ...options });
  const page = await context.newPage();
  const trouble = [];
  page.on("pageerror", (error) => trouble.push(error.message));
  page.on("console", (message) => message.type() === "error" && trouble.push(message.text()));
  page.on("request", (request) => request.url().startsWith("file:") || trouble.push(request.url()));
  await page.goto(pathToFileURL(path).href);
  await page.locator(".card").first().waitFor();
  await play(page);
  await context.close();
  // The one thing that may be logged is that the policy has blocked what the test tried to run.
  assert.deepEqual(
    trouble.filter((text) => !(blocked && text.includes("Content Security Policy"))),
    [],
  );
}

async function inked(page, canvas) {
  return page.locator(canvas).evaluate((element) => {
    const { data } = element.getContext("2d").getImageData(0, 0, element.width, element.height);
    const colors = new Set();
    for (let place = 0; place < data.length; place += 4 * 97) {
      colors.add(`${data[place]} ${data[place + 1]} ${data[place + 2]}`);
    }
    return colors.size > 5;
  });
}

/** The page with another value in it. */
function write(name, change) {
  const page = readFileSync(file, "utf8");
  const [start, end] = [page.indexOf('id="value">') + 'id="value">'.length, page.lastIndexOf("</script>\n<script>")];
  const value = JSON.parse(page.slice(start, end));
  change(value);
  const json = JSON.stringify(value).replaceAll("<", "\\u003c");
  const path = join(folder, `${name}.html`);
  writeFileSync(path, page.slice(0, start) + json + page.slice(end));
  return path;
}

/** A recording folder as the recorder writes it. */
function unpack() {
  return [
    "import lzma, pathlib, shutil, sys",
    "shutil.copytree(sys.argv[1], sys.argv[2])",
    "packed = pathlib.Path(sys.argv[2]) / 'counters.ncu-rep.xz'",
    "packed.with_suffix('').write_bytes(lzma.decompress(packed.read_bytes()))",
  ].join("; ");
}
