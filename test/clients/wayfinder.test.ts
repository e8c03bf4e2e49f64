/**
 * @ar.io/wayfinder-core against the gateway: routing, verification by hash, data root and signature, retrieval by chunks.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";

type Library = typeof import("@ar.io/wayfinder-core");
type Verification = Parameters<Library["createWayfinderClient"]>[0] extends infer Options ? Options : never;

describeWith(clientLibraries, "wayfinder-core", () => {
  let program: RunningProgram;
  let library: Library;
  let manifestText: string;
  /** An item that is no manifest: what is asked for is what comes. */
  let picture: string;

  beforeAll(async () => {
    program = await startDev();
    library = await import("@ar.io/wayfinder-core");
    manifestText = await (await fetch(`${program.line.gateway}/raw/${program.line.sample.manifest}`)).text();
    picture = JSON.parse(manifestText).paths["cairn.png"].id;
  }, 120_000);

  afterAll(() => program?.remove());

  const gateway = () => new URL(program.line.gateway);

  /** The library would ask a public index what an id is. */
  const asTransaction = { classify: async () => "transaction" as const };

  async function fetchVerified(id: string, strategyName: string) {
    const strategies: Record<string, () => unknown> = {
      hash: () => new library.HashVerificationStrategy({ trustedGateways: [gateway()] }),
      "data root": () =>
        new library.DataRootVerificationStrategy({ trustedGateways: [gateway()], classifier: asTransaction }),
      "item signature": () =>
        new library.Ans104SignatureVerificationStrategy({ trustedGateways: [gateway()] }),
      "transaction signature": () =>
        new library.TransactionSignatureVerificationStrategy({ trustedGateways: [gateway()] }),
      remote: () => new library.RemoteVerificationStrategy(),
    };
    const events = new Set<string>();
    const options = {
      routingSettings: { strategy: new library.StaticRoutingStrategy({ gateway: gateway().href }) },
      verificationSettings: {
        enabled: true,
        strict: true,
        strategy: strategies[strategyName]?.(),
        events: {
          onVerificationSucceeded: () => events.add("verified"),
          onVerificationFailed: (event: unknown) => events.add(`failed ${String(event)}`),
        },
      },
    };
    const answer = await library
      .createWayfinderClient(options as Verification)
      .request(`ar://${id}` as `ar://${string}`);
    return { bytes: new Uint8Array(await answer.arrayBuffer()), events: [...events] };
  }

  test("verifies an item by its hash", async () => {
    const { bytes, events } = await fetchVerified(picture, "hash");
    const expected = await (await fetch(`${program.line.gateway}/raw/${picture}`)).bytes();
    expect(events).toEqual(["verified"]);
    expect(bytes).toEqual(expected);
  });

  test("verifies an item by what the gateway says of it", async () => {
    const { events } = await fetchVerified(picture, "remote");
    expect(events).toEqual(["verified"]);
  });

  test("finds in the bundle what an item's signature is checked by", async () => {
    // Version 1.9.2 then refuses every item: it looks for `binary` on what has none. So the parts are looked at here.
    const strategy = new library.Ans104SignatureVerificationStrategy({ trustedGateways: [gateway()] });
    const { signature, signatureType } = await strategy.getSignatureData({ txId: picture });
    const id = createHash("sha256").update(signature).digest("base64url");
    expect({ id, signatureType }).toEqual({ id: picture, signatureType: 1 });
  });

  test("verifies a transaction by its data root and by its signature", async () => {
    const { sample } = program.line;
    expect((await fetchVerified(sample.bundle, "data root")).events).toEqual(["verified"]);
    expect((await fetchVerified(sample.bundle, "transaction signature")).events).toEqual(["verified"]);
  });

  test("retrieves an item chunk by chunk", async () => {
    const strategy = new library.ChunkDataRetrievalStrategy();
    const requestUrl = new URL(`/raw/${program.line.sample.manifest}`, gateway());
    const answer = await strategy.getData({ gateway: gateway(), requestUrl });
    expect(await answer.text()).toBe(manifestText);
  });
});
