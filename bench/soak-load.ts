/**
 * The streams of a mixed load on a whole program: reads, queries, uploads, uploads in parts, payments, observation.
 *
 * Every stream repeats one step with a pause, so that the load is bounded. Wrong responses are counted by their fault,
 * with the text of the first occurrence.
 * @module
 */
import { createDataItem } from "../src/arweave/data-item.ts";
import { createSolanaSigner } from "../src/arweave/signers/ed25519.ts";
import { encodeBase58 } from "../src/lib/base-encodings.ts";
import type { DevLine } from "../test/support/program.ts";
import { createRandom } from "../test/support/random.ts";

/** An upload, with the data that later checks need. */
type Known = Readonly<{
  id: string;
  size: number;
  digest: string;
  bytes: Uint8Array<ArrayBuffer> | undefined;
}>;

/** The counts of a load so far. */
export type LoadCounts = Readonly<{
  requests: Readonly<Record<string, number>>;
  /** Number and first text of each fault. */
  errors: ReadonlyMap<string, Readonly<{ count: number; first: string }>>;
}>;

/** A running load. */
export type RunningLoad = Readonly<{
  counts: () => LoadCounts;
  /** Begins no further step until `resume`. */
  pause: () => void;
  resume: () => void;
  stop: () => Promise<void>;
}>;

/** Number of newest uploads that reads choose from. */
const knownMax = 2_000;

/** Maximum size of items that are stored for a second send. Bytes. */
const resentBytesMax = 64 * 2 ** 10;

/** Timeout of a request. Milliseconds. */
const requestTimeoutMs = 60_000;

const sizes = [0, 1, 900, 20_000, 100_000, 262_144, 300_000, 1_500_000, 4_000_000];

const page = `query($after: String, $tags: [TagFilter!]) {
  transactions(first: 50, after: $after, tags: $tags, sort: HEIGHT_DESC) {
    pageInfo { hasNextPage }
    edges { cursor node { id owner { address } tags { name value } data { size } bundledIn { id } block { height } } }
  }
}`;

/** Starts the streams. @param rate - 0.5 makes all pauses twice as long. */
export function startLoad(line: DevLine, seed: number, rate = 1): RunningLoad {
  const random = createRandom(seed);
  const signer = createSolanaSigner(new Uint8Array(32).map(() => random.below(256)));
  const account = encodeBase58(signer.owner);
  const requests: Record<string, number> = {};
  const errors = new Map<string, { count: number; first: string }>();
  const known: Known[] = [];
  const bundles = new Set<string>();
  const stopping = new AbortController();
  let isPaused = false;
  let after: string | undefined;

  const wrong = (what: string, detail: string) => {
    const error = errors.get(what) ?? { count: 0, first: detail.slice(0, 300) };
    error.count += 1;
    errors.set(what, error);
  };

  /** Sends a request and reads its response; returns `undefined` for a wrong response. */
  async function ask(what: string, url: string, init: RequestInit = {}, statuses: readonly number[] = [200]) {
    requests[what] = (requests[what] ?? 0) + 1;
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(requestTimeoutMs)]);
    const send = async () => {
      const response = await fetch(url, { redirect: "manual", ...init, signal });
      return { response, body: await response.bytes() };
    };
    const { response, body } = await send().catch((error) => {
      // A server may close an idle connection at the moment at which a client uses it again.
      if (init.method !== undefined || errorCode(error) !== "ECONNRESET") throw error;
      requests["sent again after a reset"] = (requests["sent again after a reset"] ?? 0) + 1;
      return send();
    });
    if (statuses.includes(response.status)) return { response, body };
    wrong(`${what}: ${response.status}`, `${url} ${Buffer.from(body).toString()}`);
    return undefined;
  }

  const expectBytes = (what: string, body: Uint8Array, { id, digest, size }: Known) => {
    if (body.length !== size || digestOf(body) !== digest) wrong(`${what}: wrong bytes`, `${id} of ${size}`);
  };

  async function read(): Promise<void> {
    const item = known[random.below(known.length)];
    if (item === undefined) return;
    const { id, size } = item;
    const url = `${line.gateway}/${random.below(2) === 0 ? id : `raw/${id}`}`;
    const start = random.below(Math.max(1, size));
    switch (random.below(8)) {
      case 0:
        await ask("head", url, { method: "HEAD" });
        return;
      case 1: {
        if (size < 2) return;
        const end = Math.min(size - 1, start + random.below(70_000));
        const ranged = await ask("range", url, { headers: { Range: `bytes=${start}-${end}` } }, [206, 416]);
        const isExact = ranged?.response.status === 416 || ranged?.body.length === end - start + 1;
        if (ranged !== undefined && !isExact) wrong("range: wrong size", `${id} ${start}-${end}`);
        return;
      }
      case 2:
        await ask("ranges", url, { headers: { Range: "bytes=0-9, 100-199, -5" } }, [206, 416]);
        return;
      case 3:
        await ask("ignored range", url, { headers: { Range: "x" } });
        return;
      case 4:
        await ask("absent", `${line.gateway}/${"A".repeat(42)}${"AQgw"[random.below(4)]}`, {}, [404]);
        return;
      default: {
        const whole = await ask("read", url);
        if (whole !== undefined) expectBytes("read", whole.body, item);
      }
    }
  }

  async function readChain(): Promise<void> {
    const [id] = [...bundles].slice(-1 - random.below(Math.max(1, Math.min(20, bundles.size))));
    await ask("info", `${line.gateway}/info`);
    if (id === undefined) return;
    const offset = await ask("offset", `${line.gateway}/tx/${id}/offset`, {}, [200, 202, 404]);
    if (offset?.response.status === 200) {
      const { offset: end } = JSON.parse(Buffer.from(offset.body).toString());
      await ask("chunk", `${line.gateway}/chunk/${end}`);
    }
    await ask("bundle", `${line.gateway}/${id}`);
  }

  async function query(): Promise<void> {
    const tags = random.below(3) === 0 ? [{ name: "Kind", values: [`kind-${random.below(5)}`] }] : undefined;
    const body = JSON.stringify({ query: page, variables: { after, tags } });
    const headers = { "Content-Type": "application/json" };
    const reply = await ask("graphql", `${line.gateway}/graphql`, { method: "POST", headers, body });
    if (reply === undefined) return;
    const { data, errors: faults } = JSON.parse(Buffer.from(reply.body).toString());
    if (faults !== undefined) return wrong("graphql: errors", JSON.stringify(faults));
    const { edges, pageInfo } = data.transactions;
    for (const { node } of edges) if (node.bundledIn !== null) bundles.add(node.bundledIn.id);
    for (const id of bundles) if (bundles.size > 100) bundles.delete(id);
    after = pageInfo.hasNextPage ? edges.at(-1)?.cursor : undefined;
  }

  const makeItem = (size: number) => {
    const data = new Uint8Array(size);
    for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(data.subarray(at, at + 65_536));
    const tags = [
      { name: "Content-Type", value: size % 2 === 0 ? "text/plain" : "application/octet-stream" },
      { name: "Kind", value: `kind-${random.below(5)}` },
    ];
    const item = new Uint8Array(createDataItem({ data, tags }, signer));
    return { item, data };
  };

  const remember = (id: string, data: Uint8Array, bytes?: Uint8Array<ArrayBuffer>) => {
    known.push({ id, size: data.length, digest: digestOf(data), bytes });
    if (known.length > knownMax) known.splice(0, known.length - knownMax);
  };

  async function upload(): Promise<void> {
    const url = `${line.upload}/v1/tx/solana`;
    const sent = known[random.below(known.length)];
    if (sent?.bytes !== undefined && random.below(10) === 0) {
      const again = await ask("upload again", url, { method: "POST", body: sent.bytes }, [200, 202]);
      const id = again === undefined ? sent.id : JSON.parse(Buffer.from(again.body).toString()).id;
      if (id !== sent.id) wrong("upload again: another id", id);
      return;
    }
    const { item, data } = makeItem(sizes[random.below(sizes.length)] ?? 0);
    // Items of the smallest sizes come again and again: their receipt is found by the header alone.
    if (data.length > 100 && random.below(20) === 0) {
      item[item.length - 1] = (item[item.length - 1] ?? 0) ^ 1;
      await ask("invalid upload", url, { method: "POST", body: item }, [400]);
      return;
    }
    const taken = await ask("upload", url, { method: "POST", body: item });
    if (taken === undefined) return;
    const { id } = JSON.parse(Buffer.from(taken.body).toString());
    remember(id, data, item.length <= resentBytesMax ? item : undefined);
  }

  async function uploadInParts(): Promise<void> {
    const partBytes = 5 * 2 ** 20;
    const { item, data } = makeItem(2 * partBytes + random.below(partBytes));
    const chunks = `${line.upload}/v1/chunks/solana`;
    const made = await ask("parts: create", `${chunks}/-1/-1?chunkSize=${partBytes}`);
    if (made === undefined) return;
    const upload = JSON.parse(Buffer.from(made.body).toString()).id;
    for (let at = 0; at < item.length; at += partBytes) {
      const body = item.subarray(at, at + partBytes);
      if ((await ask("parts: part", `${chunks}/${upload}/${at}`, { method: "POST", body })) === undefined) return;
    }
    const ended = await ask("parts: finalize", `${chunks}/${upload}/-1`, { method: "POST" });
    if (ended !== undefined) remember(JSON.parse(Buffer.from(ended.body).toString()).id, data);
  }

  /** Buys credits by card, as a payer in a browser does. */
  async function pay(payer: string): Promise<void> {
    const topUp = `${line.payment}/v1/top-up/checkout-session/${payer}/usd/10000?token=solana`;
    const opened = await ask("top-up", topUp);
    if (opened === undefined) return;
    const { paymentSession } = JSON.parse(Buffer.from(opened.body).toString());
    const body = new URLSearchParams({ cardNumber: "4242424242424242" });
    await ask("card", paymentSession.url, { method: "POST", body }, [303]);
  }

  async function price(): Promise<void> {
    await ask("price", `${line.payment}/v1/price/bytes/${1 + random.below(1e9)}`);
    await ask("rates", `${line.payment}/v1/rates`);
    await ask("balance", `${line.payment}/v1/balance?address=${account}`, {}, [200, 404]);
    if (random.below(4) === 0) await pay(account);
  }

  async function observe(): Promise<void> {
    await ask("metrics", `${line.gateway}/metrics`);
    await ask("healthcheck", `${line.gateway}/svc/healthcheck`);
    await ask("debug", `${line.gateway}/svc/admin/debug`, {
      headers: { Authorization: `Bearer ${line.adminKey}` },
    });
  }

  /** Repeats a step until the load is stopped. */
  async function repeat(name: string, pauseMs: number, step: () => Promise<unknown>): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await step();
      } catch (error) {
        if (!stopping.signal.aborted) wrong(`${name}: ${errorName(error)}`, String(error));
      }
      do if (!stopping.signal.aborted) await Bun.sleep(pauseMs / rate);
      while (isPaused && !stopping.signal.aborted);
    }
  }

  /** Uploads start when the account has credits. */
  async function begin(): Promise<void> {
    await pay(account);
    const url = `${line.payment}/v1/balance?address=${account}`;
    while (!stopping.signal.aborted && (await ask("balance", url, {}, [200, 404]))?.response.status !== 200)
      await Bun.sleep(100);
  }

  const funded = begin().catch((error) => wrong("begin", String(error)));
  const whenFunded = (step: () => Promise<void>) => () => funded.then(step);
  const streams = [
    ...Array.from({ length: 4 }, () => repeat("read", 15, read)),
    repeat("chain", 200, readChain),
    repeat("graphql", 100, query),
    ...Array.from({ length: 2 }, () => repeat("upload", 250, whenFunded(upload))),
    repeat("parts", 20_000, whenFunded(uploadInParts)),
    repeat("price", 1_000, price),
    repeat("observe", 5_000, observe),
  ];
  return {
    counts: () => ({ requests, errors }),
    pause: () => {
      isPaused = true;
    },
    resume: () => {
      isPaused = false;
    },
    stop: async () => {
      stopping.abort(new DOMException("the load ends", "AbortError"));
      await Promise.all(streams);
    },
  };
}

function digestOf(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("base64url");
}

function errorName(error: unknown): string {
  return error instanceof Error ? error.name : "error";
}

function errorCode(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
