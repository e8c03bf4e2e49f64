/**
 * docs/proof.md held to the program: its example is a gateway's response, and its steps and commands say what it says.
 * `WRITE=1 bun test test/proof-page.test.ts` mends the example.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { writeBundle } from "../src/arweave/bundle.ts";
import { readProof } from "../src/arweave/proof.ts";
import { removeFolder } from "../src/lib/remove-folder.ts";
import { ecdsa, ecdsaJwk } from "./dev/devnet/support.ts";
import { askProof, bundleTags, check, ed25519, makeItem, postChunked, textBytes } from "./http/proof-chain.ts";
import { repositoryRoot } from "./support/program.ts";
import { openStack } from "./support/stack.ts";

const docs = resolve(repositoryRoot, "docs");
const exampleFile = join(docs, "proof-example.json");
const page = readFileSync(join(docs, "proof.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "cairn-page-"));
afterAll(() => removeFolder(folder));

/** The example: the second of two items, on a chain of fixed keys, seed and time. */
const items = ["One stone on another.", "And one on top of it."].map((text) => makeItem(textBytes(text), ed25519));
const [, example = items[0]] = items;
if (example === undefined) throw new Error("there are two items");

/** The blocks of code in a language, in order. */
function codeIn(language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(([, code = ""]) => code);
}

async function run(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { cwd: folder, stdout: "pipe", stderr: "pipe" });
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return out + errors;
}

test("the page's example is a gateway's response", async () => {
  const stack = await openStack({}, { seed: "proof", wallets: [{ name: "ecdsa", jwk: ecdsaJwk }] });
  await postChunked(stack.devnet, ecdsa, writeBundle(items.map(({ item }) => item)), bundleTags);
  await stack.devnet.mine(1);
  await stack.settled();
  const response = `${JSON.stringify(JSON.parse(await askProof(stack.gateway.url, example.id)), undefined, 2)}\n`;
  if (process.env["WRITE"] === "1") writeFileSync(exampleFile, response);
  await stack.close();
  expect(readFileSync(exampleFile, "utf8")).toBe(response);
  expect(check(example, response).outcome).toBe("proven");
});

describe("the page", () => {
  test("names the example's id, content and tx_root", () => {
    const { block } = readProof(readFileSync(exampleFile, "utf8"));
    const { tx_root: txRoot } = JSON.parse(block?.text ?? "{}");
    for (const name of [example.id, new TextDecoder().decode(example.bytes), txRoot]) expect(page).toContain(name);
  });

  test("checks the example by hand, with nothing but hashes and one signature", async () => {
    writeFileSync(join(folder, "proof-example.json"), readFileSync(exampleFile));
    writeFileSync(join(folder, "by-hand.mjs"), codeIn("js").join("\n"));
    expect(await run(process.execPath, "by-hand.mjs")).toBe(codeIn("text")[0] ?? "");
  });

  test("rejects the example by hand when a byte of it is another", async () => {
    const text = readFileSync(exampleFile, "utf8");
    const parts = ["tx_path", "data_path", "chunk", "header"];
    for (const part of parts) {
      const damaged = text.replace(
        new RegExp(`("${part}": ")(.)`),
        (_all, before, first) => before + (first === "A" ? "B" : "A"),
      );
      expect(damaged).not.toBe(text);
      writeFileSync(join(folder, "proof-example.json"), damaged);
      expect(await run(process.execPath, "by-hand.mjs")).toContain("is not so");
    }
  });

  test("shows what cairn verify says of it", async () => {
    writeFileSync(join(folder, "proof-example.json"), readFileSync(exampleFile));
    const [commands = "", said] = [codeIn("sh").find((code) => code.includes("--proof")), codeIn("text")[1]];
    const cairn = `${process.execPath} ${resolve(repositoryRoot, "src/main.ts")}`;
    expect(await run("sh", "-c", commands.replace(/^cairn/m, cairn))).toBe(said ?? "");
  });
});
