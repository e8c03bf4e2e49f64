/**
 * `cairn upload` of a folder with links: targets outside of it are not published by default.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createEthereumSigner } from "../../../src/arweave/signers/ethereum.ts";
import { listLocalFiles } from "../../../src/cli/upload/local-files.ts";
import { signFile } from "../../../src/cli/upload/local-item.ts";
import { rsaKey, testKey } from "../../support/signers.ts";
import { runCairn } from "../command.ts";
import { openUploadFolder } from "./upload-folder.ts";

const { folder, service, write } = openUploadFolder("cairn-links-");
const wallet = write("wallet/key.json", JSON.stringify(rsaKey));

function link(path: string, target: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  symlinkSync(target, join(folder, path));
}

function upload(path: string, ...words: string[]) {
  return runCairn(["upload", path, "--to", service.url, "--wallet", wallet, ...words], {
    cwd: folder,
    environment: { XDG_STATE_HOME: join(folder, "state") },
  });
}

async function uploaded(path: string, ...words: string[]) {
  const { code, out, err } = await upload(path, "--json", ...words);
  if (code !== 0) throw new Error(err);
  const { items, leftOutReasons } = JSON.parse(out);
  return [items.map((item: { path: string }) => item.path), leftOutReasons];
}

describe("W1: links of a folder", () => {
  write("outside/secret.txt", "secret");
  write("outside/.hidden/x.txt", "hidden");
  write("site/page.txt", "page");
  write("site/sub/near.txt", "near");
  write("site/.env", "SECRET=1");
  write("site-of-another/page.txt", "a folder whose name begins the same way");
  link("site/file-out", "../outside/secret.txt");
  link("site/folder-out", "../outside");
  link("site/absolute-out", "/etc/passwd");
  link("site/parent", "..");
  link("site/sub/grandparent", "../..");
  link("site/sub/sibling-out", "../../site-of-another");
  link("site/chain-1", "chain-2");
  link("site/chain-2", "sub/chain-3");
  link("site/sub/chain-3", "../../outside/secret.txt");
  link("site/through-a-folder", "sub/../../outside/secret.txt");
  link("site/back", ".");
  link("site/sub/back", "..");
  link("site/itself", "itself");
  link("site/ring-1", "ring-2");
  link("site/ring-2", "ring-1");
  link("site/broken", "nowhere");
  link("site/below-a-file", "page.txt/x");
  link("site/hidden-within", ".env");
  link("site/inside-file", "sub/near.txt");
  link("site/inside-folder", "sub");

  const always = {
    ".env": "hidden",
    back: "loop",
    "sub/back": "loop",
    "inside-folder/back": "loop",
    itself: "loop",
    "ring-1": "loop",
    "ring-2": "loop",
    broken: "broken",
    "below-a-file": "broken",
    "hidden-within": "hidden",
  };
  const inside = ["inside-file", "inside-folder/near.txt", "page.txt", "sub/near.txt"];

  test("out of it are left out in every form, and links within are followed", async () => {
    const out = "outside";
    expect(await uploaded("site")).toEqual([
      inside,
      {
        ...always,
        "file-out": out,
        "folder-out": out,
        "absolute-out": out,
        parent: out,
        "sub/grandparent": out,
        "sub/sibling-out": out,
        "inside-folder/sibling-out": out,
        "inside-folder/grandparent": out,
        "chain-1": out,
        "chain-2": out,
        "sub/chain-3": out,
        "inside-folder/chain-3": out,
        "through-a-folder": out,
      },
    ]);
    const { code, out: said } = await upload("site");
    expect([code, said]).toEqual([0, expect.stringContaining("links out of the folder; included by --follow-links")]);
    for (const path of ["file-out", "folder-out", "absolute-out", "parent", "sub/grandparent"])
      expect(said).toContain(path);
    const bodies = [...service.items.values()].map((bytes) => Buffer.from(bytes).toString("latin1"));
    for (const secret of ["secret", "root:", "another folder", "SECRET"])
      expect(bodies.filter((body) => body.endsWith(secret))).toEqual([]);
  });

  test("are followed with --follow-links, but not to hidden files, and not in circles", async () => {
    write("narrow/page.txt", "page");
    write("beside/far.txt", "far");
    write("beside/.ssh/id", "hidden");
    link("narrow/away", "../beside");
    link("narrow/hidden-away", "../beside/.ssh");
    link("beside/again", "../narrow");
    expect(await uploaded("narrow", "--follow-links")).toEqual([
      ["away/far.txt", "page.txt"],
      { "away/.ssh": "hidden", "away/again": "loop", "hidden-away": "hidden" },
    ]);
  });

  test("that multiply folders end with a message", () => {
    for (let level = 0; level < 40; level += 1) {
      for (const name of ["a", "b"]) link(`wide/${level}/${name}`, `../${level + 1}`);
    }
    mkdirSync(join(folder, "wide", "40"));
    const rules = { hidden: true, outside: true, paths: [], isKey: () => false };
    expect(() => listLocalFiles(join(folder, "wide", "0"), { ...rules, outside: false })).toThrow("links to folders");
  });

  test.each([
    ["a link to itself", "itself", "is a circular link"],
    ["a link in a circle", "ring-1", "is a circular link"],
    ["a link to nothing", "broken", "is neither a file nor a folder"],
  ])("%s as the argument is a message", async (_what, name, says) => {
    const { code, out, err } = await upload(join("site", name));
    expect([code, out, err]).toEqual([2, "", `site/${name} ${says}\n`]);
  });

  test("that are arguments are followed", async () => {
    link("named", "outside/secret.txt");
    link("named-folder", "narrow");
    expect(await uploaded("named")).toEqual([["named"], {}]);
    expect((await uploaded("named-folder"))[0]).toEqual(["page.txt"]);
  });
});

describe("W1, W2: a file that changes between the check and the read", () => {
  const rules = { hidden: true, outside: true, paths: [], isKey: () => false };
  const signer = createEthereumSigner(testKey(3));
  const { signal } = new AbortController();
  const secret = write("target/secret.txt", "twelve bytes");
  const sign = (name: string, isKey = () => false) => {
    const [file] = listLocalFiles(join(folder, name), rules).files;
    if (file === undefined) throw new Error("no file was listed");
    return (change: () => void) => {
      change();
      return signFile(file, [], signer, isKey, signal);
    };
  };
  const cases: [string, (at: string) => void][] = [
    [
      "a link in its place",
      (at) => {
        rmSync(join(at, "a.txt"));
        symlinkSync(secret, join(at, "a.txt"));
      },
    ],
    [
      "another file of the same size in its place",
      (at) => {
        writeFileSync(join(at, "b.txt"), "other bytes!");
        renameSync(join(at, "b.txt"), join(at, "a.txt"));
      },
    ],
    [
      "a link in the place of its folder",
      (at) => {
        renameSync(at, `${at}-moved`);
        mkdirSync(`${at}-other`);
        writeFileSync(join(`${at}-other`, "a.txt"), "other bytes!");
        symlinkSync(`${at}-other`, at);
      },
    ],
  ];
  test.each(cases)("%s is not uploaded", async (what, change) => {
    const name = `changing-${Bun.hash(what)}`;
    write(`${name}/a.txt`, "twelve bytes");
    await expect(sign(name)(() => change(join(folder, name)))).rejects.toMatchObject({
      context: { reason: expect.stringContaining("changed while it was being uploaded") },
    });
  });

  test("a file that became a key is not uploaded", async () => {
    write("becomes-key/a.txt", "twelve bytes");
    await expect(sign("becomes-key", () => true)(() => undefined)).rejects.toMatchObject({
      context: { reason: expect.stringContaining("changed while it was being uploaded") },
    });
  });

  test("an unchanged file is signed", async () => {
    write("stays/a.txt", "twelve bytes");
    expect(await sign("stays")(() => undefined)).toMatchObject({ kind: "whole" });
  });
});
