/**
 * `cairn upload` against a service that stores items, and one that fails.
 * @module
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkItem } from "../../../src/arweave/data-item.ts";
import { readManifest } from "../../../src/arweave/manifest.ts";
import { ed25519KeyPair } from "../../../src/arweave/signers/ed25519.ts";
import { encodeBase58 } from "../../../src/lib/base-encodings.ts";
import { removeFolder } from "../../../src/lib/remove-folder.ts";
import { rsaKey, testKey } from "../../support/signers.ts";
import { type Ran, runCairn } from "../command.ts";
import { fakeReceipt } from "../upload-service.ts";
import { openUploadFolder } from "./upload-folder.ts";

const { folder, service, write } = openUploadFolder("cairn-upload-");
const state = join(folder, "state");
const dev = join(folder, "data", "devnet");
mkdirSync(dev, { recursive: true });
writeFileSync(join(dev, "wallet-rsa.json"), JSON.stringify(rsaKey));

const { LARGE_MIB } = process.env;
/** Of the file that shows that memory does not grow with files. Bytes. */
const largeBytes = Number(LARGE_MIB ?? "160") * 2 ** 20;

beforeEach(() => {
  service.forget();
  removeFolder(state);
});
function upload(path: string, ...words: string[]): Promise<Ran> {
  return runCairn(["upload", path, "--to", service.url, ...words], {
    cwd: folder,
    environment: { XDG_STATE_HOME: state },
  });
}

/** The item of an id as it was taken: signed, and whole. */
function taken(id: string) {
  const checked = checkItem(service.items.get(id) ?? new Uint8Array(0), "strict");
  if (checked.kind === "invalid") throw new Error(`${id}: ${checked.reason}`);
  return checked;
}

describe("a file", () => {
  test("has every tag of the options, in their order; a value may have commas and dashes", async () => {
    const words = [
      "--tag",
      "Title=One, two",
      "--json",
      "--tag=Content-Type=text/x-own",
      "--tag",
      "a=--tag",
      "--tags",
      "b=1,c=2",
    ];
    const { out } = await upload(write("tagged.html", "<p>Tagged</p>"), ...words);
    expect(taken(JSON.parse(out).id).header.tags).toEqual([
      { name: "Title", value: "One, two" },
      { name: "Content-Type", value: "text/x-own" },
      { name: "a", value: "--tag" },
      { name: "b", value: "1" },
      { name: "c", value: "2" },
    ]);
  });

  test("is signed by the development chain's wallet, with its type, and its receipt is printed", async () => {
    const { code, out } = await upload(write("page.html", "<h1>Hi</h1>"), "--json", "--tags", "App-Name=Test,x=y=z");
    const record = JSON.parse(out);
    const { header, data } = taken(record.id);
    expect(Buffer.from(data).toString()).toBe("<h1>Hi</h1>");
    expect(header.tags).toEqual([
      { name: "Content-Type", value: "text/html;charset=utf-8" },
      { name: "App-Name", value: "Test" },
      { name: "x", value: "y=z" },
    ]);
    expect(record).toEqual({
      id: header.id,
      url: `http://gateway.test/${header.id}`,
      address: header.ownerAddress,
      to: service.url,
      winc: "1000",
      items: [
        {
          path: "page.html",
          size: 11,
          id: header.id,
          state: "uploaded",
          winc: "1000",
          receipt: fakeReceipt(header.id),
        },
      ],
      leftOut: [],
      leftOutReasons: {},
    });
    expect(code).toBe(0);
  });

  test("has the same id at each signature, and is not sent again", async () => {
    const file = write("same.txt", "the same");
    const first = JSON.parse((await upload(file, "--json")).out);
    utimesSync(file, 1, 1);
    const second = JSON.parse((await upload(file, "--json")).out);
    expect(second).toMatchObject({ id: first.id, winc: "0", items: [{ state: "there" }] });
    expect(service.asked.filter(({ method }) => method === "POST").length).toBe(1);
    const other = JSON.parse((await upload(file, "--json", "--tags", "a=b")).out);
    expect(other.id).not.toBe(first.id);
  });

  test("has its receipt stored: it is printed again, and verified by the item's id", async () => {
    const file = write("stored.txt", "stored");
    const { id, items } = JSON.parse((await upload(file, "--json")).out);
    const again = JSON.parse((await upload(file, "--json")).out);
    expect(again.items).toEqual([{ ...items[0], state: "there" }]);
    const verify = () => runCairn(["receipt", "verify", id], { environment: { XDG_STATE_HOME: state } });
    expect(await verify()).toMatchObject({ code: 0, out: expect.stringContaining(`item       ${id}`) });
    const stored = join(state, "cairn", "receipts");
    expect((await upload(file)).out).toContain(`receipts  ${stored}`);
    // The receipt is of another service.
    writeFileSync(join(stored, `${id}.json`), JSON.stringify({ ...items[0].receipt, to: "http://elsewhere" }));
    expect(JSON.parse((await upload(file, "--json")).out).items[0].receipt).toBeUndefined();
    rmSync(stored, { recursive: true });
    expect(await verify()).toMatchObject({
      code: 2,
      err: expect.stringContaining(`no receipt of ${id} is stored`),
    });
  });

  test("with a damaged stored receipt reports its file, also when the printed output is verified", async () => {
    write("pair/a.txt", "a");
    write("pair/b.txt", "b");
    const { items, manifest } = JSON.parse((await upload("pair", "--json")).out);
    const file = join(state, "cairn", "receipts", `${items[0].id}.json`);
    writeFileSync(file, "{");
    const fault = `${file} is not a receipt any more: expected a JSON object`;
    expect(await upload("pair")).toMatchObject({
      code: 0,
      out: expect.stringContaining(`damaged   ${fault}`),
    });
    const printed = (await upload("pair", "--json")).out;
    const { receipt: _, ...rest } = items[0];
    expect(JSON.parse(printed)).toMatchObject({
      items: [{ ...rest, state: "there", receiptFault: fault }, { receipt: items[1].receipt }],
      manifest: { receipt: manifest.receipt },
    });
    const { code, out } = await runCairn(["receipt", "verify", write("printed.json", printed)]);
    expect([code, out]).toEqual([1, expect.stringContaining(`2 of 3 receipts are valid`)]);
    expect(out).toContain(`  ${items[0].id}  ${fault}\n`);
  });

  const pair = ed25519KeyPair(testKey(4));
  const solana = Buffer.concat([testKey(4), pair.publicKey]);
  test.each([
    ["an Ethereum key", "eth.txt", `0x${"11".repeat(32)}\n`, 3, "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"],
    ["a secp256k1 key", "ec.json", ecKey(), 3, "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"],
    ["a Solana key pair", "sol.json", JSON.stringify([...solana]), 4, encodeBase58(pair.publicKey)],
    ["a Solana key pair as text", "sol.txt", encodeBase58(solana), 4, encodeBase58(pair.publicKey)],
  ] as const)("is signed with %s", async (_name, name, key, type, address) => {
    const file = write("signed.txt", "signed");
    const { out } = await upload(file, "--json", "--wallet", write(`keys/${name}`, key));
    const record = JSON.parse(out);
    expect(taken(record.id).header.signatureType).toBe(type);
    expect(record.address).toBe(address);
  });

  test("that is empty is an item too", async () => {
    const { out } = await upload(write("empty.bin", ""), "--json");
    expect(taken(JSON.parse(out).id).data.length).toBe(0);
  });
});

describe("a folder", () => {
  const site = {
    "index.html": "<h1>Home</h1>",
    "404.html": "<h1>No</h1>",
    "about/index.html": "<h1>About</h1>",
    "about/copy.html": "<h1>About</h1>",
    ".env": "SECRET=1",
    ".git/config": "[core]",
    ".well-known/x.json": "{}",
    "data/ledger.sqlite": "an item without a secret here",
  };
  for (const [path, data] of Object.entries(site)) write(`site/${path}`, data);
  symlinkSync(join(folder, "absent"), join(folder, "site", "broken"));

  test("becomes items and a manifest: index, fallback, every path but hidden ones", async () => {
    const { code, out } = await upload("site", "--json");
    const record = JSON.parse(out);
    expect(code).toBe(0);
    const { header, data } = taken(record.id);
    expect(header.tags).toEqual([{ name: "Content-Type", value: "application/x.arweave-manifest+json" }]);
    const ids = new Map<string, string>(record.items.map(({ path, id }: { path: string; id: string }) => [path, id]));
    expect([...ids.keys()]).toEqual([
      ".well-known/x.json",
      "404.html",
      "about/copy.html",
      "about/index.html",
      "data/ledger.sqlite",
      "index.html",
    ]);
    const manifest = readManifest(data);
    expect(manifest.version).toBe("0.2.0");
    expect(manifest.index).toEqual({ path: "index.html" });
    expect<string | undefined>(manifest.fallback).toBe(ids.get("404.html"));
    expect(new Map<string, string>(manifest.paths)).toEqual(ids);
    for (const [path, id] of ids) expect(Buffer.from(taken(id).data).toString()).toBe(site[path as keyof typeof site]);
    expect(record.leftOut).toEqual([".env", ".git", "broken"]);
    expect(record.url).toBe(`http://gateway.test/${record.id}/`);
    // Equal files are one item, sent and paid for once: five items and the manifest.
    expect([record.winc, service.items.size]).toEqual(["6000", 6]);
  });

  test("has the same manifest whatever the service had before; nothing is sent or charged twice", async () => {
    const first = JSON.parse((await upload("site", "--json")).out);
    const before = service.asked.length;
    const { out } = await upload("site");
    expect(out).toContain("6 files, 83 B, all there already");
    expect(out).toContain("0 winc");
    expect(out).toContain(first.id);
    expect(service.asked.slice(before).filter(({ method }) => method === "POST")).toEqual([]);
  });

  test("uses the pages of --index and --fallback", async () => {
    const words = ["--index", "about/index.html", "--fallback", "index.html", "--json"];
    const record = JSON.parse((await upload("site", ...words)).out);
    const manifest = readManifest(taken(record.id).data);
    expect(manifest.index).toEqual({ path: "about/index.html" });
    expect(manifest.fallback).toBe(record.items.find(({ path }: { path: string }) => path === "index.html").id);
  });

  test("without an index opens its first file, and has no fallback", async () => {
    write("photos/b.png", "b");
    write("photos/a.png", "a");
    const manifest = readManifest(taken(JSON.parse((await upload("photos", "--json")).out).id).data);
    expect([manifest.index, manifest.fallback]).toEqual([{ path: "a.png" }, undefined]);
  });

  test("never includes keys: not the data folder, not the wallet, and no hidden files by default", async () => {
    const wallet = write("mixed/key.json", JSON.stringify(rsaKey));
    write("mixed/page.txt", "page");
    write("mixed/.hidden", "hidden");
    const record = JSON.parse((await upload("mixed", "--json", "--wallet", wallet)).out);
    expect(record.items.map(({ path }: { path: string }) => path)).toEqual(["page.txt"]);
    const asked = JSON.parse((await upload("mixed", "--json", "--hidden", "--wallet", wallet)).out);
    expect(asked.items.map(({ path }: { path: string }) => path)).toEqual([".hidden", "page.txt"]);
    for (const secret of ["data", "data/devnet/wallet-rsa.json", "mixed/key.json"]) {
      const { code, err } = await upload(secret, "--wallet", wallet);
      expect([code, err]).toEqual([2, expect.stringContaining("contains keys")]);
    }
    const whole = JSON.parse((await upload(".", "--json")).out);
    expect(whole.leftOut).toContain("data");
    symlinkSync(wallet, join(folder, "mixed", "linked.json"));
    symlinkSync(join(folder, "data", "devnet"), join(folder, "mixed", "linked"));
    const linked = JSON.parse((await upload("mixed", "--json", "--wallet", wallet)).out);
    expect(linked.items.map(({ path }: { path: string }) => path)).toEqual(["page.txt"]);
    expect(linked.leftOut).toEqual([".hidden", "key.json", "linked", "linked.json"]);
    const { code } = await upload("mixed/linked/wallet-rsa.json", "--wallet", wallet);
    expect(code).toBe(2);
  });
});

describe("a misuse is reported, and nothing is sent", () => {
  write("file.txt", "x");
  write("-o.txt", "x");
  mkdirSync(join(folder, "void"));
  const nothing = write("keys/nothing.json", "{}");
  test.each([
    ["nothing there", ["absent"], "neither a file nor a folder"],
    ["an empty name, as of a variable that is not set", [""], "missing argument <path>"],
    ["an empty folder", ["void"], "contains no files"],
    ["no wallet", ["file.txt", "--wallet", "absent.json"], "absent.json cannot be read"],
    ["an invalid wallet", ["file.txt", "--wallet", nothing], "is not a valid wallet"],
    [
      "tags without a value",
      ["file.txt", "--tags", "novalue"],
      "invalid value 'novalue' for --tags: expected name=value",
    ],
    [
      "a tag without a value",
      ["file.txt", "--tag", "novalue"],
      "invalid value 'novalue' for --tag: expected name=value",
    ],
    ["tags that are too long", ["file.txt", "--tags", `a=${"b".repeat(4_000)}`], "--tags: "],
    [
      "an index that is not there",
      ["site", "--index", "no.html"],
      "invalid value 'no.html' for --index: expected a file of the folder",
    ],
    ["an index of a file", ["file.txt", "--index", "file.txt"], "--index and --fallback require a folder"],
    ["an unknown option", ["file.txt", "--walet", "x"], "unknown option '--walet' for 'cairn upload'"],
    ["a file whose name looks like an option", ["-o.txt"], "; to name the file, write ./-o.txt"],
  ])("%s", async (_name, words, says) => {
    const { code, out, err } = await upload(words[0] ?? "", ...words.slice(1));
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(says);
    expect(service.asked.filter(({ method }) => method === "POST")).toEqual([]);
  });

  test("a folder where no receipt can be stored", async () => {
    const words = ["upload", "file.txt", "--to", service.url];
    const environment = { XDG_STATE_HOME: join(folder, "file.txt") };
    const { code, err } = await runCairn(words, { cwd: folder, environment });
    expect([code, err]).toEqual([2, expect.stringContaining("set XDG_STATE_HOME to use another folder")]);
    expect(service.items.size).toBe(0);
  });

  test("an unreachable service", async () => {
    for (const [to, code, says] of [
      ["ftp://x", 2, "invalid value 'ftp://x' for --to: expected an http or https URL"],
      ["http://127.0.0.1:1", 1, "connection refused"],
      [`${service.url}/elsewhere`, 1, "responded 404: Not Found"],
    ] as const) {
      const ran = await runCairn(["upload", "file.txt", "--to", to], { cwd: folder });
      expect([ran.code, ran.err]).toEqual([code, expect.stringContaining(says)]);
    }
  });
});

describe("a failing service", () => {
  test("is retried, and accepts each item once", async () => {
    service.fail(({ path }, times) => {
      if (path !== "/tx" || times > 3) return undefined;
      if (times === 1) return Response.json("Service busy", { status: 503, headers: { "Retry-After": "1" } });
      return times === 2 ? new Response("bad gateway", { status: 502 }) : Response.json("slow", { status: 429 });
    });
    const { code, err, out } = await upload(write("again.txt", "again"), "--json");
    expect([code, service.items.size]).toEqual([0, 1]);
    expect(err).toContain("it responded 503 Service busy");
    expect(err).toContain("it responded 502 bad gateway");
    expect(JSON.parse(out).items[0].state).toBe("uploaded");
  });

  test("that rejects for missing credits: needed and available credits are printed, and nothing more is sent", async () => {
    const underfunded = {
      error: "Insufficient balance",
      message: "Insufficient balance",
      needed: "123",
      available: "45",
    };
    service.fail(({ path }) => (path === "/tx" ? Response.json(underfunded, { status: 402 }) : undefined));
    for (let file = 0; file < 40; file += 1) write(`many/${file}.txt`, `file ${file}`);
    const { code, out, err } = await upload("many");
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain("not enough credits: 123 winc are needed, 45 are available");
    expect(service.asked.filter(({ method }) => method === "POST").length).toBeLessThanOrEqual(8);
  });

  test.each([
    [
      "400 with a reason",
      () => Response.json("Invalid Data Item! no", { status: 400 }),
      "responded 400: Invalid Data Item! no",
    ],
    ["no JSON", () => new Response("fine", { status: 200 }), "responded 200: fine"],
    ["a receipt for something else", () => Response.json(fakeReceipt("A".repeat(43))), "it is for another item"],
  ])("that responds with %s fails", async (_name, response, says) => {
    service.fail(({ path }) => (path === "/tx" ? response() : undefined));
    const { code, err } = await upload(write("rejected.txt", "rejected"));
    expect([code, err]).toEqual([1, expect.stringContaining(says)]);
  });

  test("whose receipt is not signed fails", async () => {
    const { id } = JSON.parse((await upload(write("forged.txt", "forged"), "--json")).out);
    service.forget();
    const forged = fakeReceipt(id, { deadlineHeight: 9_999 });
    service.fail(({ path }) => (path === "/tx" ? Response.json(forged) : undefined));
    const { code, err } = await upload(join(folder, "forged.txt"));
    expect([code, err]).toEqual([1, expect.stringContaining("its signature does not match its key")]);
  });

  test("that is a gateway is sent nothing", async () => {
    service.fail(({ path }) => (path === "/info" ? Response.json({ network: "x", height: 1 }) : undefined));
    const { code, err } = await upload("file.txt");
    expect([code, err]).toEqual([2, expect.stringContaining(`may be ${service.url}/upload`)]);
    expect(service.asked.length).toBe(1);
  });

  test("with a lower size limit is sent nothing", async () => {
    service.fail(({ path }) => (path === "/info" ? Response.json({ uploadLimitBytes: 3 }) : undefined));
    const { code, err } = await upload(write("four.txt", "four"));
    expect([code, err]).toEqual([1, expect.stringContaining("accepts at most 3 B")]);
    expect(service.asked.length).toBe(1);
  });
});

describe("a large file in parts", () => {
  const mebibyte = 2 ** 20;
  const large = randomBytes(45 * mebibyte);
  const file = write("large.bin", large);

  test("becomes one item, and leaves no state", async () => {
    const { code, out } = await upload(file, "--json");
    const record = JSON.parse(out);
    expect(code).toBe(0);
    expect(Buffer.compare(taken(record.id).data, large)).toBe(0);
    const posts = service.asked.filter(({ method, size }) => method === "POST" && size > 0);
    expect(posts.length).toBe(6);
    expect(Math.max(...posts.map(({ size }) => size))).toBe(8 * mebibyte);
    expect(readdirSync(join(state, "cairn", "uploads"))).toEqual([]);
  });

  test("continues after an interruption: only missing parts are sent", async () => {
    service.fail(({ path }, times) =>
      /\/(16777216|25165824)$/.test(path) && times <= 1 ? Response.json("no", { status: 400 }) : undefined,
    );
    const first = await upload(file);
    expect([first.code, first.err]).toEqual([1, expect.stringContaining("responded 400: no")]);
    const [stored = ""] = readdirSync(join(state, "cairn", "uploads"));
    const there = service.uploads.get("upload-1")?.size ?? 0;
    expect(there).toBeLessThan(6);
    const before = service.asked.length;
    service.fail(() => undefined);
    const second = JSON.parse((await upload(file, "--json")).out);
    expect(stored).toBe(`${second.id}.json`);
    expect(service.uploads.size).toBe(1);
    const sent = service.asked.slice(before).filter(({ method, size }) => method === "POST" && size > 0);
    expect(sent.length).toBe(6 - there);
    expect(Buffer.compare(taken(second.id).data, large)).toBe(0);
  });

  test.each([
    ["killed", "SIGKILL", 137, ""],
    ["interrupted", "SIGINT", 130, "stopped; run the command again to continue\n"],
  ] as const)("%s in the middle, it continues", async (_how, signal, code, says) => {
    const reached = Promise.withResolvers<void>();
    service.fail(({ path }) => {
      if (/\/upload-1\/\d+$/.test(path) && (service.uploads.get("upload-1")?.size ?? 0) >= 2) reached.resolve();
      return undefined;
    });
    const running = runCairn(["upload", file, "--to", service.url], {
      cwd: folder,
      environment: { XDG_STATE_HOME: state },
      onStart: (child) => void reached.promise.then(() => child.kill(signal)),
    });
    expect(await running).toMatchObject({ code, err: says });
    service.fail(() => undefined);
    const there = service.uploads.get("upload-1")?.size ?? 0;
    const before = service.asked.length;
    const { id } = JSON.parse((await upload(file, "--json")).out);
    expect(Buffer.compare(taken(id).data, large)).toBe(0);
    const sent = service.asked.slice(before).filter(({ method, size }) => method === "POST" && size > 0);
    expect([service.uploads.size, sent.length]).toEqual([1, 6 - there]);
  });

  test("starts again when the service has forgotten it", async () => {
    service.fail(({ path }) => (path.endsWith("/8388608") ? Response.json("no", { status: 400 }) : undefined));
    expect((await upload(file)).code).toBe(1);
    service.uploads.clear();
    service.fail(() => undefined);
    expect((await upload(file)).code).toBe(0);
    expect(service.items.size).toBe(1);
  });

  test.each([
    [
      { status: "UNDERFUNDED", needed: "7", available: "3" },
      "not enough credits: 7 winc are needed, 3 are available; buy some (cairn topup), then run this again",
    ],
    [{ status: "INVALID", reason: "its signature" }, "rejects the item as invalid: its signature"],
    [{ status: "APPROVAL_FAILED" }, "reports APPROVAL_FAILED"],
  ])("that ends as %p fails", async (status, says) => {
    service.endAs(status);
    const { code, err } = await upload(file);
    expect([code, err]).toEqual([1, expect.stringContaining(says)]);
  });

  test("of which the service wants too many parts is sent nothing", async () => {
    service.fail(({ path }) => (path.endsWith("/-1/-1") ? Response.json({ id: "one", chunkSize: 1 }) : undefined));
    const { code, err } = await upload(file);
    expect([code, err]).toEqual([1, expect.stringContaining("wants more than 10000 parts for one item")]);
    expect(service.asked.filter(({ method }) => method === "POST")).toEqual([]);
  });

  test("that failed for missing credits is only finalized later", async () => {
    service.endAs({ status: "UNDERFUNDED" });
    expect((await upload(file)).code).toBe(1);
    const before = service.asked.length;
    service.endAs(undefined);
    expect((await upload(file)).code).toBe(0);
    const sent = service.asked.slice(before).filter(({ method, size }) => method === "POST" && size > 0);
    expect([service.uploads.size, sent]).toEqual([1, []]);
  });

  test("takes memory that does not grow with its size", async () => {
    const huge = write("huge.bin", "");
    const block = randomBytes(mebibyte);
    const writer = Bun.file(huge).writer();
    for (let written = 0; written < largeBytes; written += mebibyte) writer.write(block);
    await writer.end();
    const small = await upload(write("small.txt", "small"));
    const ran = await upload(huge);
    expect([ran.code, ran.err]).toEqual([0, expect.any(String)]);
    expect(existsSync(huge)).toBe(true);
    expect(ran.peakBytes - small.peakBytes).toBeLessThan(150 * mebibyte);
    rmSync(huge);
  }, 120_000);
});

function ecKey(): string {
  return JSON.stringify({
    kty: "EC",
    crv: "secp256k1",
    d: Buffer.alloc(32, 0x11).toString("base64url"),
    x: "",
    y: "",
  });
}
