/**
 * A bundle of 1,000 items, posted to the devnet with arweave-js, is readable and queryable soon after it is mined.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { idOfSignature } from "../../src/arweave/id.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { signers } from "../support/signers.ts";
import { eventually } from "../support/until.ts";

const itemCount = 1_000;

type Wallet = import("arweave/node/lib/wallet").JWKInterface;

describeWith(clientLibraries, "a bundle of a thousand items, posted with arweave-js", () => {
  let program: RunningProgram;

  beforeAll(async () => {
    program = await startDev({ environment: { DEVNET_MINING: "manual" } });
  }, 120_000);

  afterAll(() => program?.remove());

  test("is read and found item by item", async () => {
    const { default: Arweave } = await import("arweave");
    const { gateway, node, wallets } = program.line;
    const { hostname, port } = new URL(gateway);
    const arweave = Arweave.init({ host: hostname, port, protocol: "http" });
    const items = Array.from({ length: itemCount }, (_, index) => makeItem(index));
    const wallet = wallets.find(({ name }) => name === "rsa")?.jwk as Wallet;
    const transaction = await arweave.createTransaction({ data: writeBundle(items.map(({ bytes }) => bytes)) }, wallet);
    transaction.addTag("Bundle-Format", "binary");
    transaction.addTag("Bundle-Version", "2.0.0");
    await arweave.transactions.sign(transaction, wallet);
    const uploader = await arweave.transactions.getUploader(transaction);
    while (!uploader.isComplete) await uploader.uploadChunk();

    await fetch(`${node}/mine`, { method: "POST" });
    const minedAt = performance.now();
    const last = items[itemCount - 1]?.id ?? "";
    await eventually(
      () => found(gateway, "999"),
      (ids) => ids.includes(last),
    );
    const seconds = (performance.now() - minedAt) / 1_000;
    console.log(`queryable ${seconds.toFixed(2)} s after the block was mined`);

    for (const index of [0, 1, 500, 998, 999]) {
      const id = items[index]?.id ?? "";
      expect(await found(gateway, String(index))).toEqual([id]);
      const response = await fetch(`${gateway}/raw/${id}`);
      expect(await response.text()).toBe(`item ${index}`);
      expect(response.headers.get("x-ar-io-verified")).toBe("true");
    }
    expect(await walk(gateway)).toEqual(new Set(items.map(({ id }) => id)));
  }, 120_000);
});

function makeItem(index: number) {
  const signer = signers[index % signers.length];
  if (signer === undefined) throw new Error("there are signers");
  const tags = [
    { name: "Content-Type", value: "text/plain" },
    { name: "Thousand", value: "yes" },
    { name: "Number", value: String(index) },
  ];
  const bytes = createDataItem({ data: `item ${index}`, tags }, signer);
  return { bytes, id: idOfSignature(bytes.subarray(2, 2 + signer.scheme.signatureSize)) };
}

async function found(gateway: string, number: string): Promise<string[]> {
  const filter = `tags: [{ name: "Number", values: ["${number}"] }, { name: "Thousand", values: ["yes"] }]`;
  const { transactions } = await query(gateway, `{ transactions(${filter}) { edges { node { id } } } }`);
  return transactions.edges.map(({ node }: { node: { id: string } }) => node.id);
}

async function walk(gateway: string): Promise<Set<string>> {
  const ids = new Set<string>();
  let after = "";
  for (;;) {
    const part = `first: 100, after: "${after}", tags: [{ name: "Thousand", values: ["yes"] }]`;
    const text = `{ transactions(${part}) { pageInfo { hasNextPage } edges { cursor node { id } } } }`;
    const { transactions } = await query(gateway, text);
    for (const { node } of transactions.edges) ids.add(node.id);
    after = transactions.edges.at(-1)?.cursor ?? "";
    if (!transactions.pageInfo.hasNextPage) return ids;
  }
}

async function query(gateway: string, text: string) {
  const headers = { "content-type": "application/json", accept: "application/json" };
  const response = await fetch(`${gateway}/graphql`, {
    method: "POST",
    headers,
    body: JSON.stringify({ query: text }),
  });
  const { data, errors } = await response.json();
  if (errors !== undefined) throw new Error(JSON.stringify(errors));
  return data;
}
