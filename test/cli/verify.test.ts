/**
 * `cairn verify` and `cairn get`: at honest and malicious gateways, from files, and as a process with its exit codes.
 * @module
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readBlock } from "../../src/arweave/block.ts";
import type { Anchor } from "../../src/arweave/proof-verify.ts";
import { shieldNames } from "../../src/cli/run.ts";
import { verifyAtGateway } from "../../src/cli/verify-gateway.ts";
import { encodeBase64url } from "../../src/lib/base64url.ts";
import { openHttp } from "../../src/lib/http-client.ts";
import type { ByteSpan } from "../../src/lib/range.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { ecdsa, rsa } from "../dev/devnet/support.ts";
import { askProof, openProofChain } from "../http/proof-chain.ts";
import { repositoryRoot } from "../support/program.ts";
import { until } from "../support/until.ts";

const chain = await openProofChain();
const gateway = chain.url();
const http = openHttp({ firstByteMs: 20_000, stallMs: 20_000, totalMs: 20_000 });
const folder = mkdtempSync(join(tmpdir(), "cairn-verify-"));
const block = readBlock(await (await chain.stack.node.get("/block/height/1")).text());
const otherBlock = readBlock(await (await chain.stack.node.get("/block/height/2")).text());

/** What a gateway in between makes of a response. */
type Tampering = (path: string, response: Response, body: Uint8Array<ArrayBuffer>) => Response | undefined;

let tamper: Tampering = () => undefined;
const liar = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  fetch: async (request) => {
    const { pathname, search } = new URL(request.url);
    const range = request.headers.get("range");
    const response = await fetch(`${gateway}${pathname}${search}`, {
      headers: range === null ? {} : { range },
    });
    const body = await response.bytes();
    return tamper(pathname + search, response, body) ?? new Response(body, response);
  },
});

afterAll(async () => {
  http.close();
  await liar.stop(true);
  removeFolder(folder);
  await chain.stack.close();
});

function verify(id: string, range?: ByteSpan, at = gateway, anchor: Anchor = { kind: "hash", hash: block.hash }) {
  const question = { id: id as typeof chain.deep.id, anchor, http, gateway: at, range };
  return verifyAtGateway(question, AbortSignal.timeout(60_000));
}

describe("at a gateway", () => {
  test.each([
    ["a transaction", chain.chunked, undefined],
    ["a part of one", chain.chunked, { start: 262_000, end: 263_000 }],
    ["a part that reaches beyond the end", chain.chunked, { start: 530_000, end: 10_000_000 }],
    ["a transaction of format 1", chain.first, undefined],
    ["a part of one of format 1", chain.first, { start: 5, end: 6 }],
    ["a transaction without data", chain.transfer, undefined],
    ["an item", chain.small, undefined],
    ["an item without content", chain.empty, undefined],
    ["an item three bundles down", chain.deep, undefined],
    ["a part of one", chain.deep, { start: 1, end: 4 }],
    ["an item larger than one proof can be about", chain.long, undefined],
    ["a part of it", chain.long, { start: 9_000_000, end: 9_000_100 }],
    ["a part of it that is too large as well", chain.long, { start: 3, end: 17 * 2 ** 20 - 3 }],
  ] as const)("%s is proven", async (_name, { id, bytes }, range) => {
    const verification = await verify(id, range);
    expect(verification).toMatchObject({ outcome: "proven", size: bytes.length, open: [] });
    expect(verification.fault).toBeUndefined();
    const end = Math.min(range?.end ?? bytes.length, bytes.length);
    expect(verification.range).toEqual({ start: range?.start ?? 0, end });
    expect(verification.trusted).toEqual([`the block hash that was given: ${block.hash}`]);
  });

  test("an item without a block is not proven", async () => {
    const signed = await verify(chain.pendingFirst.id);
    expect([signed.outcome, signed.open[0]]).toEqual(["signed", "it is in no block yet"]);
    // Its chunks have no offset at which nodes could be asked.
    const { outcome, open } = await verify(chain.pending.id);
    expect([outcome, open]).toEqual(["unavailable", ["it is in no block yet"]]);
  });

  test("another block's hash proves nothing", async () => {
    const anchor = { kind: "hash", hash: otherBlock.hash } as const;
    expect(await verify(chain.deep.id, undefined, gateway, anchor)).toMatchObject({
      fault: { step: "block" },
    });
  });

  test.each([
    ["A".repeat(43), "it responded 404"],
    [chain.small.id, "connect"],
  ])("a missing proof is reported: %p %p", async (id, reason) => {
    const at = reason === "connect" ? "http://127.0.0.1:1" : gateway;
    const verification = await verify(id, undefined, at);
    expect(verification.outcome).toBe("unavailable");
    expect(verification.fault?.reason).toContain(reason);
  });
});

describe("at a malicious gateway", () => {
  const raw = (change: (body: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>): Tampering => {
    return (path, { status, headers }, body) =>
      path.startsWith("/raw/")
        ? new Response(change(body), {
            status,
            headers: status === 206 ? { "content-range": headers.get("content-range") ?? "" } : {},
          })
        : undefined;
  };
  const proof = (change: (proof: Record<string, never>, path: string) => unknown): Tampering => {
    return (path, { status }, body) =>
      path.startsWith("/svc/proof/") && status === 200
        ? Response.json(change(JSON.parse(new TextDecoder().decode(body)), path))
        : undefined;
  };
  const flipped = (at: number) => (body: Uint8Array<ArrayBuffer>) => {
    const other = new Uint8Array(body);
    other[at] = (other[at] ?? 0) ^ 1;
    return other;
  };
  const { long, chunked, deep } = chain;
  const part = { start: 9_000_000, end: 9_000_100 };

  test.each<[string, string, ByteSpan | undefined, Tampering, string]>([
    ["about a byte of an item", deep.id, undefined, raw(flipped(3)), "chunk"],
    ["about a byte of a transaction", chunked.id, undefined, raw(flipped(300_000)), "chunk"],
    ["about a byte of the first of two parts", long.id, undefined, raw(flipped(100)), "chunk"],
    ["about a byte of the second of two parts", long.id, undefined, raw(flipped(17_500_000)), "chunk"],
    ["about a byte beside a part of an item", long.id, part, raw(flipped(100)), "signature"],
    ["about a byte behind a part of an item", long.id, part, raw(flipped(17_000_000)), "signature"],
    ["with fewer bytes", deep.id, undefined, raw((body) => body.subarray(0, -1)), "fewer bytes"],
    ["with more bytes", deep.id, undefined, raw((body) => new Uint8Array([...body, 1])), "more bytes"],
    ["with the whole for a part", chunked.id, { start: 1, end: 9 }, whole(), "200 to the request for content"],
    ["about the size", deep.id, undefined, proof((each) => ({ ...each, size: 18 })), "range"],
    [
      "about the range",
      deep.id,
      { start: 0, end: 9 },
      proof((each) => ({ ...each, range: { start: 0, end: 8 } })),
      "another range",
    ],
    ["about the id", deep.id, undefined, proof((each) => ({ ...each, id: chunked.id })), "the proof is about"],
    ["with an invalid proof", deep.id, undefined, proof(() => []), "not a JSON object"],
    ["with endless rejections", chunked.id, undefined, tooLarge(), "even a range of one byte"],
  ])("%s, nothing is proven", async (_name, id, range, tampering, reason) => {
    tamper = tampering;
    const verification = await verify(id, range, `http://127.0.0.1:${liar.port}`);
    tamper = () => undefined;
    expect(["rejected", "unavailable"]).toContain(verification.outcome);
    expect(JSON.stringify(verification.fault)).toContain(reason);
  });

  test("that cuts the fields of a format 1 transaction elsewhere, nothing is signed", async () => {
    const { id, bytes } = chain.pendingFirst;
    const addressSize = 32;
    const size = bytes.length - addressSize;
    tamper = (path, { status }, body) => {
      if (path.startsWith("/raw/")) return new Response(body.slice(addressSize), { status });
      if (!path.startsWith("/svc/proof/")) return undefined;
      const each = JSON.parse(new TextDecoder().decode(body));
      const target = encodeBase64url(bytes.subarray(0, addressSize));
      const fields = { ...JSON.parse(each.transaction.text), target, data: "", data_size: "0", data_root: "" };
      const text = JSON.stringify(fields);
      const dataAt = text.indexOf('"data":"') + '"data":"'.length;
      const transaction = { ...each.transaction, text, data_at: dataAt, data_size: size, data_root: "" };
      return Response.json({ ...each, size, range: { start: 0, end: size }, transaction });
    };
    const { outcome, fault, open } = await verify(id, undefined, `http://127.0.0.1:${liar.port}`);
    tamper = () => undefined;
    expect([outcome, fault?.reason]).toEqual(["rejected", "it is in no block yet"]);
    expect(open).toContainEqual(expect.stringContaining("format 1 joins its fields without marks"));
  });

  test("with a wrong place of the second part, nothing is proven", async () => {
    tamper = proof((each, path) =>
      path.includes("range=16777216") ? { ...each, kind: "data_item", items: [] } : each,
    );
    const verification = await verify(long.id, undefined, `http://127.0.0.1:${liar.port}`);
    tamper = () => undefined;
    expect(verification.fault?.reason).toContain("two parts are of different places");
  });

  function whole(): Tampering {
    return (path, _response, body) => (path.startsWith("/raw/") ? new Response(body) : undefined);
  }

  function tooLarge(): Tampering {
    return (path) => (path.startsWith("/svc/proof/") ? new Response("", { status: 413 }) : undefined);
  }
});

describe("as a process", () => {
  const file = (name: string, content: string | Uint8Array) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
  const run = async (...words: string[]) => {
    const child = Bun.spawn([process.execPath, join(repositoryRoot, "src/main.ts"), "verify", ...words], {
      cwd: folder,
      env: { PATH: "" },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, errors, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { out, errors, code };
  };
  const { deep, long } = chain;

  test("prints each proven step, and the trusted assumptions", async () => {
    const { out, errors, code } = await run(deep.id, "--gateway", gateway, "--tx-root", block.txRoot);
    expect({ errors, code }).toEqual({ errors: "", code: 0 });
    const names = out.split("\n").map((line) => line.slice(0, 14).trim());
    expect(out).toStartWith(`proven: ${deep.id}, all 19 bytes\n`);
    expect(names.slice(1, -1)).toEqual([
      "block",
      "transaction",
      "place",
      "chunks",
      "bundles",
      "bundles",
      "bundles",
      "signature",
      "trusted",
      "trusted",
    ]);
  });

  test("an ECDSA transaction is proven with its owner given", async () => {
    const ask = (...more: string[]) => run(chain.curved.id, "--gateway", gateway, "--json", ...more);
    const [bare, known, wrong] = [await ask(), await ask("--owner", ecdsa.address), await ask("--owner", rsa.address)];
    expect([bare, known, wrong].map(({ code, out }) => [code, JSON.parse(out).outcome])).toEqual([
      [1, "placed"],
      [0, "proven"],
      [1, "rejected"],
    ]);
  });

  test("works from files, with a block header given by hand, and without a network", async () => {
    const proof = file("proof.json", await askProof(gateway, deep.id));
    const part = file("part.json", await askProof(gateway, long.id, "9000000-9000099"));
    const data = file("data", deep.bytes);
    const wrong = file("wrong", new Uint8Array(deep.bytes).fill(7, 2, 3));
    const header = file("block.json", block.text);
    const other = file("other.json", otherBlock.text);
    const proven = await run(deep.id, "--proof", proof, "--data", data, "--block", header, "--json");
    expect(proven.code).toBe(0);
    expect(JSON.parse(proven.out)).toMatchObject({
      outcome: "proven",
      trusted: [`the block header that was given: block 1, hash ${block.hash}`],
    });
    const all = file("all", long.bytes);
    const some = file("some", long.bytes.subarray(9_000_000, 9_000_100));
    const results = [
      await run(deep.id, "--proof", proof, "--data", wrong, "--json"),
      await run(deep.id, "--proof", proof, "--data", data, "--block", other, "--json"),
      await run(long.id, "--proof", part, "--data", some, "--block", header, "--json"),
      await run(long.id, "--proof", part, "--data", all, "--block", header, "--json"),
    ];
    expect(results.map(({ code, out }) => [code, JSON.parse(out).outcome])).toEqual([
      [1, "rejected"],
      [1, "rejected"],
      [1, "placed"],
      [0, "proven"],
    ]);
  }, 120_000);

  test.each([
    [[], "missing argument <id>"],
    [["x"], "invalid value 'x' for <id>"],
    [[deep.id, "--gateway", "ftp://a"], "for --gateway: expected"],
    [[deep.id, "--proof", "a"], "must be given together"],
    [[deep.id, "--proof", "a", "--data", "b"], "cannot be read"],
    [[deep.id, "--gateway", "http://a", "--proof", "a", "--data", "b"], "exclude each other"],
    [[deep.id, "--gateway", "http://a", "--block-hash", "a"], "expected a block hash"],
    [[deep.id, "--gateway", "http://a", "--tx-root", "a"], "expected a tx_root"],
    [[deep.id, "--gateway", "http://a", "--block", "none"], "cannot be read"],
    [[deep.id, "--gateway", "http://a", "--block", "a", "--tx-root", "b"], "exclude each other"],
    [[deep.id, "--gateway", "http://a", "--range", "9-1"], "for --range: expected"],
    [[deep.id, "--gateway", "http://a", "--owner", "a"], "for --owner: expected an address"],
    [[deep.id, "--gateway", "http://a", "--blockhash", "a"], "unknown option '--blockhash'"],
  ])("%p is a misuse", async (words, reason) => {
    const { errors, code } = await run(...words);
    expect(code).toBe(2);
    expect(errors).toContain(reason);
  });

  test("an invalid proof file is a misuse, with the reason", async () => {
    const { errors, code } = await run(deep.id, "--proof", file("none.json", "{}"), "--data", file("none", ""));
    expect([code, errors]).toEqual([2, expect.stringContaining("version is not 1")]);
  });
});

/** Reads one byte of a pipe without a wait. */
function hasByte(pipe: number): boolean {
  try {
    return readSync(pipe, Buffer.alloc(1)) === 1;
  } catch {
    return false; // there is none yet
  }
}

describe("cairn get", () => {
  const { deep, long, chunked, pendingFirst, curved } = chain;
  const target = join(folder, "written");
  const get = (...words: string[]) => run([process.execPath, join(repositoryRoot, "src/main.ts"), "get", ...words]);
  /** Runs `cairn get` of an item, followed by more of a line of a shell. */
  const getInShell = (id: string, rest: string) => {
    const line = `set -o pipefail; "$1" "$2" get ${id} --gateway ${gateway} ${rest}`;
    return run(["/bin/bash", "-c", line, "", process.execPath, join(repositoryRoot, "src/main.ts")]);
  };
  const run = async (command: readonly string[]) => {
    const child = Bun.spawn([...command], {
      cwd: folder,
      env: { PATH: "/usr/bin:/bin", TMPDIR: folder },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, errors] = await Promise.all([new Response(child.stdout).bytes(), new Response(child.stderr).text()]);
    const left = readdirSync(folder).filter((name) => name.includes("cairn-get-"));
    expect(left).toEqual([]);
    return { out, errors, code: await child.exited };
  };

  test.each([
    ["an item three bundles down", deep, "proven by its block"],
    ["an item larger than one proof can be about", long, "proven by its block"],
    ["a transaction without a block", pendingFirst, "signed by its owner, in no block yet"],
  ] as const)(
    "writes %s to a file and to standard output",
    async (_name, { id, bytes }, says) => {
      const toFile = await get(id, "--gateway", gateway, "-o", target);
      expect([toFile.code, toFile.errors, toFile.out.length]).toEqual([0, expect.stringContaining(says), 0]);
      expect(Bun.hash(readFileSync(target))).toBe(Bun.hash(bytes));
      rmSync(target);
      const toOutput = await get(id, "--gateway", gateway);
      expect([toOutput.code, Bun.hash(toOutput.out)]).toEqual([0, Bun.hash(bytes)]);
    },
    60_000,
  );

  test.each([
    ["a flipped byte", (body: Uint8Array) => body.with(300_000, (body[300_000] ?? 0) ^ 1), "chunk"],
    ["a missing byte", (body: Uint8Array) => body.subarray(0, -1), "fewer bytes"],
  ] as const)("writes nothing for %s", async (_name, change, reason) => {
    tamper = (path, { status }, body) =>
      path.startsWith("/raw/") ? new Response(new Uint8Array(change(body)), { status }) : undefined;
    const at = `http://127.0.0.1:${liar.port}`;
    const runs = [await get(chunked.id, "--gateway", at, "--output", target), await get(chunked.id, "--gateway", at)];
    tamper = () => undefined;
    for (const { code, out, errors } of runs) {
      expect([code, out.length]).toEqual([1, 0]);
      expect(errors).toContain(`${chunked.id} is not verified, nothing was written: `);
      expect(errors).toContain(reason);
    }
    expect(existsSync(target)).toBe(false);
  });

  test("writes nothing of what is in no block when a block is named", async () => {
    const { code, out, errors } = await get(pendingFirst.id, "--gateway", gateway, "--block-hash", block.hash);
    expect([code, out.length, errors]).toEqual([1, 0, expect.stringContaining("it is in no block yet")]);
  });

  test("ends without an error when the reader of its output wants no more", async () => {
    const { code, out, errors } = await getInShell(long.id, "| head -c 10");
    expect([code, Buffer.from(out)]).toEqual([0, Buffer.from(long.bytes.subarray(0, 10))]);
    expect(errors).toBe("");
  });

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("ends with the code of %s, without a stack or a file", async (sent, code) => {
    const asked = Promise.withResolvers<void>();
    const slow = Bun.serve({
      port: 0,
      fetch: () => {
        asked.resolve();
        return new Promise<Response>(() => undefined);
      },
    });
    const at = `http://127.0.0.1:${slow.port}`;
    const words = ["get", deep.id, "--gateway", at, "-o", target];
    const child = Bun.spawn([process.execPath, join(repositoryRoot, "src/main.ts"), ...words], {
      env: { PATH: "/usr/bin:/bin", TMPDIR: folder },
      stderr: "pipe",
    });
    await asked.promise;
    child.kill(sent);
    expect([await new Response(child.stderr).text(), await child.exited]).toEqual(["cairn: interrupted\n", code]);
    expect(readdirSync(folder).filter((name) => name.includes("cairn-get-"))).toEqual([]);
    await slow.stop(true);
  });

  test("writes to a pipe that is its output, which stays a pipe", async () => {
    const pipe = join(folder, "pipe");
    expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
    const { code, out } = await getInShell(deep.id, `-o ${pipe} & timeout 20 cat ${pipe}; wait $!`);
    expect([code, Bun.hash(out)]).toEqual([0, Bun.hash(deep.bytes)]);
    expect(statSync(pipe).isFIFO()).toBe(true);
    rmSync(pipe);
  });

  test.each([
    ["standard output", ""],
    ["a pipe", "-o"],
  ])("a signal ends it while the reader of %s is slow", async (_name, option) => {
    const pipe = join(folder, "pipe");
    expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
    const [reader, writer] = [openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK), openSync(pipe, "w")];
    try {
      const words = ["get", long.id, "--gateway", gateway, ...(option === "" ? [] : [option, pipe])];
      const child = Bun.spawn([process.execPath, join(repositoryRoot, "src/main.ts"), ...words], {
        env: { PATH: "/usr/bin:/bin", TMPDIR: folder },
        stdout: option === "" ? writer : "ignore",
        stderr: "pipe",
      });
      // One byte is read, and no more.
      await until(() => hasByte(reader));
      child.kill("SIGTERM");
      expect([await new Response(child.stderr).text(), await child.exited]).toEqual(["cairn: interrupted\n", 143]);
      expect(readdirSync(folder).filter((name) => name.includes("cairn-get-"))).toEqual([]);
    } finally {
      for (const end of [reader, writer]) closeSync(end);
      rmSync(pipe);
    }
  });

  test("an older file stays when the verification fails", async () => {
    writeFileSync(target, "older");
    const { code } = await get(deep.id, "--gateway", gateway, "--block-hash", otherBlock.hash, "-o", target);
    expect([code, readFileSync(target, "utf8")]).toEqual([1, "older"]);
  });

  test("an ECDSA transaction requires its owner", async () => {
    const bare = await get(curved.id, "--gateway", gateway);
    expect([bare.code, bare.out.length, bare.errors]).toEqual([1, 0, expect.stringContaining("requires --owner")]);
    const known = await get(curved.id, "--gateway", gateway, "--owner", ecdsa.address);
    expect([known.code, Bun.hash(known.out)]).toEqual([0, Bun.hash(curved.bytes)]);
  });

  test.each([
    [["x"], "invalid value 'x' for <id>"],
    [[deep.id, "-o", folder], "is a folder"],
    [[deep.id, "-o", join(folder, "absent", "file")], "is not a folder"],
    [[deep.id, "--gateway", "ftp://a"], "for --gateway: expected"],
    [[deep.id, "-x"], "unknown option '-x' for 'cairn get'"],
  ])("%p is a misuse", async (words, reason) => {
    const { code, errors } = await get(...words);
    expect([code, errors]).toEqual([2, expect.stringContaining(reason)]);
  });
});

describe("names that begin with a dash", () => {
  const id = `-${"a".repeat(42)}`;
  const hash = `-${"b".repeat(63)}`;
  test.each([
    [[id], ["--", id]],
    [
      [id, "--json"],
      ["--json", "--", id],
    ],
    [
      ["--json", id],
      ["--json", "--", id],
    ],
    [
      ["--block-hash", hash, id, "--gateway", "http://a"],
      [`--block-hash=${hash}`, "--gateway", "http://a", "--", id],
    ],
    [["-h"], ["-h"]],
    [
      ["a", "--gateway", "b"],
      ["a", "--gateway", "b"],
    ],
  ])("%p are read as %p", (words, wanted) => {
    expect(shieldNames(words, ["gateway", "block-hash"])).toEqual(wanted);
  });
});
