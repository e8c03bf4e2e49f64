/**
 * The module that verifies content, imported by a page of another origin in a real browser, at a gateway that is honest
 * and at one that is not; and the package of it, whose script and types are complete.
 * Source: docs/verify-module.md.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { type ChangingGateway, openChangingGateway } from "../http/changing-gateway.ts";
import { openProofChain, type Planted, type ProofChain } from "../http/proof-chain.ts";
import { describeWith } from "../support/helpers.ts";
import { browser as browserNeed, openBrowser } from "./browser.ts";

const root = resolve(import.meta.dir, "../..");

describeWith(browserNeed, "the module in a browser", () => {
  let chain: ProofChain;
  let changing: ChangingGateway;
  let site: Bun.Server<undefined>;
  let chromium: Browser;
  let page: Page;

  beforeAll(async () => {
    chain = await openProofChain();
    changing = openChangingGateway(chain.url());
    const html = "<!doctype html><title>A web app</title>";
    site = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response(html, { headers: { "Content-Type": "text/html" } }),
    });
    chromium = await openBrowser();
    page = await chromium.newPage();
    await page.goto(site.url.href);
  }, 180_000);
  afterAll(async () => {
    await chromium?.close();
    await site?.stop(true);
    await changing?.close();
    await chain?.stack.close();
  });

  /** What the page gets: the hash of the bytes, or the name of the error and its step. */
  const verified = (id: string, gateway: string): Promise<string> =>
    page.evaluate(
      async ([module, subject, at]) => {
        const { fetchVerified } = await import(module ?? "");
        try {
          const { bytes } = await fetchVerified(subject, { gateway: at });
          const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
          return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
        } catch (error) {
          return error instanceof Error ? `${error.name}: ${error.message.split(":")[0]}` : String(error);
        }
      },
      [`${chain.url()}/svc/verify.js`, id, gateway] as const,
    );

  test.each<[string, () => Planted]>([
    ["an item with Ed25519", () => chain.small],
    ["an item with an Ethereum signature", () => chain.wide],
    ["a transaction with RSA", () => chain.chunked],
    ["an item in nested bundles", () => chain.deep],
  ])("%s is verified, and rejected where a byte is changed", async (_what, planted) => {
    const { id, bytes } = planted();
    expect(await verified(id, chain.url())).toBe(new Bun.CryptoHasher("sha256").update(bytes).digest("hex"));
    changing.change = ({ flipByte }) => flipByte(bytes.length - 1);
    expect(await verified(id, changing.url)).toBe("VerificationError: Chunks");
    changing.change = undefined;
  });

  test("unknown content is another error", async () => {
    expect(await verified("A".repeat(43), chain.url())).toStartWith("Error: http");
  });
});

describe("the package", () => {
  const folder = mkdtempSync(join(tmpdir(), "cairn-verify-package-"));
  const run = (command: readonly string[]) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync([...command], { cwd: folder, timeout: 120_000 });
    return { exitCode, text: `${stdout}${stderr}` };
  };
  beforeAll(() => {
    const packed = run([process.execPath, join(root, "console/verify/pack.ts"), join(folder, "cairn-verify")]);
    expect(packed).toEqual({ exitCode: 0, text: `${join(folder, "cairn-verify")}\n` });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("has types that the compiler accepts, and that say what is wrong", () => {
    const use = (value: string) =>
      `import { fetchVerified, type ProofStep, VerificationError, type Verified } from "./cairn-verify/verify.js";
const found: Verified = await fetchVerified("id", { gateway: "http://127.0.0.1" });
export const steps: readonly ProofStep[] = found.steps;
export const bytes: Uint8Array = found.bytes;
export const value: ${value} = found.type;
export { VerificationError };
`;
    const options = "--ignoreConfig --noEmit --strict --target esnext --module preserve --lib ESNext,DOM";
    const compile = (value: string) => {
      writeFileSync(join(folder, "use.ts"), use(value));
      return run([join(root, "node_modules/.bin/tsc"), ...options.split(" "), "--types", "", "use.ts"]);
    };
    expect(compile("string")).toEqual({ exitCode: 0, text: "" });
    expect(compile("number").text).toContain("Type 'string' is not assignable to type 'number'");
  });

  test("has one script without imports", async () => {
    const script = await Bun.file(join(folder, "cairn-verify/verify.js")).text();
    expect(new Bun.Transpiler({ loader: "js" }).scanImports(script)).toEqual([]);
    const { fetchVerified } = await import(join(folder, "cairn-verify/verify.js"));
    await expect(fetchVerified("A".repeat(43), { gateway: "http://127.0.0.1:1" })).rejects.toThrow();
  });
});
