// Prints what of others comes along in the VSIX and in the wheel, each with the text of its
// licence: `npm run licences` writes it to THIRD-PARTY-LICENSES.txt.

import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");
const LIBS = path.join(ROOT, "bundled", "libs");
const LEGAL = /^(licen[cs]e|notice|copying|third-?party)/i;

/** The packages of which a bundle holds anything. */
async function bundled(script, entry) {
  const { scripts } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8"));
  const external = scripts[script].match(/--external:(\S+)/)?.[1];
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    bundle: true,
    metafile: true,
    write: false,
    outdir: "nowhere",
    platform: script === "bundle" ? "node" : "browser",
    external: external ? [external] : [],
    logLevel: "error",
  });
  const folders = new Set();
  for (const { inputs } of Object.values(metafile.outputs)) {
    for (const [file, { bytesInOutput }] of Object.entries(inputs)) {
      const found = file.match(/^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/);
      if (found && bytesInOutput > 0) {
        folders.add(found[0]);
      }
    }
  }
  return [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(path.join(ROOT, folder, "package.json"), "utf8"));
    return { name, version, license, texts: texts(path.join(ROOT, folder)) };
  });
}

function pythonLibraries() {
  return readdirSync(LIBS)
    .filter((name) => name.endsWith(".dist-info"))
    .map((folder) => {
      const metadata = readFileSync(path.join(LIBS, folder, "METADATA"), "utf8");
      const said = (field) => metadata.match(new RegExp(`^${field}: (.*)$`, "m"))?.[1];
      const license = said("License-Expression") ?? said("License") ?? said("Classifier: License :: OSI Approved :");
      return {
        name: said("Name"),
        version: said("Version"),
        license,
        texts: texts(path.join(LIBS, folder, "licenses")),
      };
    });
}

function texts(folder) {
  const files = readdirSync(folder).filter((name) => LEGAL.test(name));
  return files.map((name) => readFileSync(path.join(folder, name), "utf8").replaceAll("\r\n", "\n").trim());
}

function entries(title, packages) {
  const sorted = packages.sort((one, other) => (one.name < other.name ? -1 : 1));
  const lines = [`== ${title}`];
  for (const { name, version, license, texts } of sorted) {
    if (!license || texts.length === 0) {
      throw new Error(
        `${name} comes along, but says nothing of its licence: add it by hand, or leave the package out.`,
      );
    }
    lines.push("", `-- ${name} ${version} (${license})`, "", ...texts.flatMap((text) => [text, ""]));
  }
  return lines.join("\n");
}

const parts = [
  "What of others comes along with rooflint, which itself is under the licence in LICENSE.",
  "Made by `npm run licences`.",
  entries("The page, in the wheel and in the VSIX", await bundled("bundle:page", "extension/page/main.ts")),
  entries("The VS Code extension", await bundled("bundle", "extension/src/extension.ts")),
  entries("The server's libraries, in the VSIX", pythonLibraries()),
];
process.stdout.write(`${parts.join("\n\n").trimEnd()}\n`);
