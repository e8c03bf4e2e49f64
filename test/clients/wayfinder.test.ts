/**
 * @ar.io/wayfinder-core against the gateway: routing, verification by hash, data root and signature, retrieval by
 * chunks; and that a gateway that gives other bytes is found out by what ours says.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { idOfSignature } from "../../src/arweave/id.ts";
import { createEd25519Signer } from "../../src/arweave/signers/ed25519.ts";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { testKey } from "../support/signers.ts";
import { eventually } from "../support/until.ts";

type Library = typeof import("@ar.io/wayfinder-core");
type Options = import("@ar.io/wayfinder-core").WayfinderOptions;
type Strategy = import("@ar.io/wayfinder-core").VerificationStrategy;
type Router = NonNullable<NonNullable<Options["routingSettings"]>["strategy"]>;

/** Of every id, a name with a dot below "localhost": the library treats that host itself as one without subdomains. */
const rootHost = "cairn.localhost";

describeWith(clientLibraries, "wayfinder-core", () => {
  let program: RunningProgram;
  let library: Library;
  let folder: string;
  let liar: ReturnType<typeof Bun.serve>;
  let manifest: string;
  /** An item that is not a manifest: the response is the requested item. */
  let picture: string;
  let pictureBytes: Uint8Array;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "cairn-wayfinder-"));
    const names = join(folder, "names.json");
    writeFileSync(names, "{}");
    program = await startDev({ environment: { ARNS_ROOT_HOST: rootHost, NAMES_FILE: names } });
    library = await import("@ar.io/wayfinder-core");
    ({ manifest } = program.line.sample);
    writeFileSync(names, JSON.stringify({ hill: manifest }));
    picture = (await (await read(`/raw/${manifest}`)).json()).paths["cairn.png"].id;
    // What was posted is served before its block was followed; until then it is not said to be verified.
    const settled = await eventually(
      () => read(`/raw/${picture}`),
      ({ headers }) => headers.get("x-ar-io-verified") === "true",
    );
    pictureBytes = await settled.bytes();
    liar = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: tamper });
  }, 120_000);

  afterAll(async () => {
    await liar?.stop(true);
    await program?.remove();
    if (folder !== undefined) removeFolder(folder);
  });

  const read = (path: string) => fetch(new URL(path, program.line.gateway));
  const gateway = () => new URL(program.line.gateway);
  /** The same gateway under a host whose subdomains the library uses. */
  const namedGateway = () => new URL(`http://${rootHost}:${gateway().port}`);
  const statically = (url: URL | string): Router =>
    new library.StaticRoutingStrategy({ gateway: String(url), logger: quiet });
  const trusting = () => ({ trustedGateways: [gateway()], logger: quiet });

  /** Gives what the gateway gives, with one bit of the body another one. */
  async function tamper(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const { method, headers } = request;
    const response = await fetch(new URL(pathname, gateway()), {
      method,
      headers: { "x-ar-io-component": headers.get("x-ar-io-component") ?? "" },
    });
    const bytes = await response.bytes();
    if (bytes.length > 0) bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    const stored = new Headers(response.headers);
    for (const name of ["content-length", "content-digest", "content-encoding"]) stored.delete(name);
    stored.set("x-ar-io-verified", "false");
    const body = method === "HEAD" ? null : slowly(bytes);
    return new Response(body, { status: response.status, headers: stored });
  }

  /**
   * In two pieces, the second a while after the first: what the headers alone reject is rejected long before the end.
   */
  const slowly = (bytes: Uint8Array) =>
    new ReadableStream({
      start: async (controller) => {
        controller.enqueue(bytes.slice(0, bytes.length >> 1));
        await Bun.sleep(30);
        controller.enqueue(bytes.slice(bytes.length >> 1));
        controller.close();
      },
    });

  /** The library would ask a public index what an id is. */
  const asTransaction = { classify: async () => "transaction" as const };
  /** It tells the console everything. */
  const quiet = Object.fromEntries(
    ["debug", "info", "warn", "error"].map((level) => [level, () => undefined]),
  ) as unknown as NonNullable<Options["logger"]>;

  const strategies: Readonly<Record<string, () => Strategy>> = {
    hash: () => new library.HashVerificationStrategy(trusting()),
    "data root": () => new library.DataRootVerificationStrategy({ ...trusting(), classifier: asTransaction }),
    "transaction signature": () => new library.TransactionSignatureVerificationStrategy(trusting()),
    remote: () => new library.RemoteVerificationStrategy(),
  };

  /**
   * Version 1.9.2 listens to a verification only when the body has ended: a rejection before is an unknown id until then,
   * and such a one fails a test. What the library is notified stays the same.
   */
  function heard(strategy: Strategy | undefined) {
    if (strategy === undefined) throw new Error("unknown strategy");
    const verifyData: Strategy["verifyData"] = (parameters) => {
      const verifying = strategy.verifyData(parameters);
      verifying.catch(() => undefined);
      return verifying;
    };
    return { trustedGateways: strategy.trustedGateways, verifyData };
  }

  /** Requests a URL. @returns The content, and the verdict of the library. */
  async function fetchVerified(address: string, strategyName: string, router = statically(gateway())) {
    const events = new Set<string>();
    const options = {
      routingSettings: { strategy: router },
      verificationSettings: {
        enabled: true,
        strict: true,
        strategy: heard(strategies[strategyName]?.()),
        events: {
          onVerificationSucceeded: () => events.add("verified"),
          onVerificationFailed: () => events.add("failed"),
        },
      },
    };
    const client = library.createWayfinderClient({ ...options, logger: quiet } as Options);
    try {
      const response = await client.request(`ar://${address}` as `ar://${string}`);
      return { bytes: await response.bytes(), events: [...events] };
    } catch (error) {
      return { bytes: undefined, events: [...events], error };
    }
  }

  const bundle = () => program.line.sample.bundle;

  test.each([
    ["an item by its hash", "hash", () => picture],
    ["a path of a manifest by its hash", "hash", () => `${manifest}/cairn.png`],
    ["a transaction by its hash", "hash", bundle],
    ["an item by what the gateway says of it", "remote", () => picture],
    ["a transaction by its data root", "data root", bundle],
    ["a transaction by its signature", "transaction signature", bundle],
  ] as const)("verifies %s, and rejects it with another bit", async (_, strategyName, addressOf) => {
    const address = addressOf();
    const { bytes, events } = await fetchVerified(address, strategyName);
    expect(events).toEqual(["verified"]);
    const id = address === bundle() ? address : picture;
    const expected = await (await read(`/raw/${id}`)).bytes();
    expect(Buffer.compare(bytes ?? new Uint8Array(0), expected)).toBe(0);
    const rejected = await fetchVerified(address, strategyName, statically(liar.url));
    expect([rejected.bytes, rejected.events]).toEqual([undefined, ["failed"]]);
  });

  test("is given in the bundle what an item's signature is checked by, over the item's data", async () => {
    // Version 1.9.2 rejects every item at this point: it looks for `binary` on what has none. So its own steps are taken
    // here one by one: the parts that it reads by range, the deep hash over them and the data, the scheme's check.
    const { DataItem, deepHash, indexToType, stringToBuffer } = await import("@dha-team/arbundles");
    const strategy = new library.Ans104SignatureVerificationStrategy(trusting());
    const parts = await strategy.getSignatureData({ txId: picture });
    expect(DataItem.isDataItem(parts)).toBe(false);
    expect(createHash("sha256").update(parts.signature).digest("base64url")).toBe(picture);
    const scheme = indexToType[parts.signatureType];
    const isSignatureOf = async (data: Uint8Array) => {
      const signed = await deepHash([
        stringToBuffer("dataitem"),
        stringToBuffer("1"),
        stringToBuffer(`${parts.signatureType}`),
        ...[parts.owner, parts.target, parts.anchor, parts.tags, data].map((part) => new Uint8Array(part)),
      ]);
      return await scheme?.verify(Buffer.from(parts.owner), signed, new Uint8Array(parts.signature));
    };
    expect(await isSignatureOf(pictureBytes)).toBe(true);
    const other = Uint8Array.from(pictureBytes);
    other[0] = (other[0] ?? 0) ^ 1;
    expect(await isSignatureOf(other)).toBe(false);
  });

  test("retrieves items chunk by chunk, within one chunk and across several", async () => {
    const counts: number[] = [];
    const large = await postLargeItem();
    for (const id of [manifest, large]) {
      let chunks = 0;
      const counted = ((input: string, init?: RequestInit) => {
        if (/\/chunk\/\d+\/data$/.test(input)) chunks += 1;
        return fetch(input, init);
      }) as typeof fetch;
      const strategy = new library.ChunkDataRetrievalStrategy({ fetch: counted, logger: quiet });
      const requestUrl = new URL(`/raw/${id}`, gateway());
      const response = await strategy.getData({ gateway: gateway(), requestUrl });
      const expected = await (await read(`/raw/${id}`)).bytes();
      expect(Buffer.compare(await response.bytes(), expected)).toBe(0);
      counts.push(chunks);
    }
    expect(counts).toEqual([1, 3]);
  });

  /** Posts a bundle of a small item and one of three chunks. @returns The id of the second. */
  async function postLargeItem(): Promise<string> {
    const { default: Arweave } = await import("arweave");
    const arweave = Arweave.init({ host: gateway().hostname, port: gateway().port, protocol: "http" });
    const signer = createEd25519Signer(testKey(2));
    const items = [100, 600_000].map((size) =>
      createDataItem({ data: new Uint8Array(size).map((_, at) => at % 251), tags: [] }, signer),
    );
    const wallet = program.line.wallets.find(({ name }) => name === "rsa")?.jwk as never;
    const transaction = await arweave.createTransaction({ data: writeBundle(items) }, wallet);
    transaction.addTag("Bundle-Format", "binary");
    transaction.addTag("Bundle-Version", "2.0.0");
    await arweave.transactions.sign(transaction, wallet);
    expect((await arweave.transactions.post(transaction)).status).toBe(200);
    const signatureEnd = 2 + signer.scheme.signatureSize;
    const id = idOfSignature(items[1]?.subarray(2, signatureEnd) ?? new Uint8Array(0));
    await eventually(
      async () => (await read(`/raw/${id}`)).headers.get("x-ar-io-root-transaction-id"),
      (root) => root === transaction.id,
    );
    return id;
  }

  test("is routed by HEAD to the gateway that responds, past an unreachable one", async () => {
    const closed = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    const gone = closed.url;
    await closed.stop(true);
    const provider = new library.StaticGatewaysProvider({ gateways: [gone.href, namedGateway().href] });
    const routers: Router[] = [
      new library.FastestPingRoutingStrategy({ gatewaysProvider: provider, timeoutMs: 5_000, logger: quiet }),
      new library.PingRoutingStrategy({
        routingStrategy: new library.RoundRobinRoutingStrategy({ gatewaysProvider: provider, logger: quiet }),
        gatewaysProvider: provider,
        timeoutMs: 5_000,
        logger: quiet,
      }),
      new library.PreferredWithFallbackRoutingStrategy({
        preferredGateway: gone.href,
        fallbackStrategy: statically(namedGateway()),
        logger: quiet,
      }),
    ];
    for (const router of routers) {
      const { bytes, events } = await fetchVerified(picture, "hash", router);
      expect([events, Buffer.compare(bytes ?? new Uint8Array(0), pictureBytes)]).toEqual([["verified"], 0]);
    }
  });

  test("follows a name, an id's own host, and an address of the gateway itself", async () => {
    const router = statically(namedGateway());
    let routedTo = "";
    const note = ({ redirectUrl }: { redirectUrl: string }) => {
      routedTo = redirectUrl;
    };
    const ask = async (address: string) => {
      const settings = { strategy: router, events: { onRoutingSucceeded: note } };
      const client = library.createWayfinderClient({ routingSettings: settings, logger: quiet });
      return await client.request(`ar://${address}` as `ar://${string}`);
    };
    // The file of names is read again when it changed.
    await eventually(
      async () => (await ask("hill")).status,
      (status) => status === 200,
    );
    const named = await fetchVerified("hill/cairn.png", "hash", router);
    expect([named.events, Buffer.compare(named.bytes ?? new Uint8Array(0), pictureBytes)]).toEqual([["verified"], 0]);
    expect((await ask("hill")).headers.get("x-arns-resolved-id")).toBe(manifest);
    const own = await ask(`${manifest}/cairn.png`);
    expect(routedTo).toMatch(/^http:\/\/[a-z2-7]{52}\.cairn\.localhost:/);
    expect(Buffer.compare(await own.bytes(), pictureBytes)).toBe(0);
    expect((await (await ask("//info")).json()).network).toBe("cairn.devnet.1");
  });

  test("finds gateways among the peers that a trusted gateway names", async () => {
    const other = await startDev({
      environment: { TRUSTED_GATEWAYS_URLS: program.line.gateway, DEVNET_SEED: "other" },
    });
    try {
      const provider = new library.TrustedPeersGatewaysProvider({
        trustedGateway: other.line.gateway,
        logger: quiet,
      });
      expect((await provider.getGateways()).map(({ origin }) => origin)).toEqual([gateway().origin]);
      const router = new library.RandomRoutingStrategy({ gatewaysProvider: provider, logger: quiet });
      expect((await fetchVerified(picture, "hash", router)).events).toEqual(["verified"]);
    } finally {
      await other.remove();
    }
  }, 120_000);
});
