/**
 * ar-gql against the gateway: run, tx, all and tags, with its own queries unchanged.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";

describeWith(clientLibraries, "ar-gql", () => {
  let program: RunningProgram;

  beforeAll(async () => {
    program = await startDev();
  }, 120_000);

  afterAll(() => program?.remove());

  const client = async () => {
    const { arGql } = await import("ar-gql");
    return arGql({ endpointUrl: `${program.line.gateway}/graphql` });
  };

  const read = async (path: string) => await (await fetch(`${program.line.gateway}${path}`)).json();

  test("tx gives every field that it asks for, of a transaction and of an item", async () => {
    const { sample, wallets } = program.line;
    const rsa = wallets.find(({ name }) => name === "rsa");
    const { tx, fetchTxTag } = await client();
    const bundle = await tx(sample.bundle);
    const header = await read(`/tx/${sample.bundle}`);
    const status = await read(`/tx/${sample.bundle}/status`);
    const block = await read(`/block/hash/${status.block_indep_hash}`);
    const { tags, ...fields } = bundle;
    expect(fields).toEqual({
      id: sample.bundle,
      anchor: header.last_tx,
      signature: header.signature,
      recipient: "",
      owner: { address: rsa?.address ?? "", key: header.owner },
      fee: { winston: header.reward, ar: arOf(header.reward) },
      quantity: { winston: "0", ar: "0.000000000000" },
      data: { size: header.data_size, type: null },
      block: {
        id: block.indep_hash,
        timestamp: block.timestamp,
        height: block.height,
        previous: block.previous_block,
      },
      parent: null,
    } as never);
    expect(tags).toContainEqual({ name: "Bundle-Format", value: "binary" });
    const manifest = await tx(sample.manifest);
    expect(manifest.data.type).toBe("application/x.arweave-manifest+json");
    expect(manifest.parent).toEqual({ id: sample.bundle });
    expect([manifest.signature, manifest.owner.key].map((text) => text.length > 80)).toEqual([true, true]);
    expect(await fetchTxTag(sample.manifest, "App-Name")).toBe("Cairn-Sample");
    expect(await tx("A".repeat(43))).toBeNull();
  });

  test("run returns the result of a query with variables", async () => {
    const { run } = await client();
    const query = "query($ids: [ID!]) { transactions(ids: $ids) { edges { node { id } } } }";
    const response = await run(query, { ids: [program.line.sample.manifest] });
    expect(response.data.transactions.edges.map(({ node }) => node.id)).toEqual([program.line.sample.manifest]);
  });

  test("all walks every page, and gives each row once", async () => {
    const query = `query($cursor: String) {
      transactions(first: 2, after: $cursor, tags: [{ name: "App-Name", values: ["Cairn-Sample"] }]) {
        pageInfo { hasNextPage } edges { cursor node { id } }
      }
    }`;
    const { all } = await client();
    const edges = await all(query);
    const ids = edges.map(({ node }) => node.id);
    const pages: string[][] = [];
    await all(query, {}, async (page) => {
      pages.push(page.map(({ node }) => node.id));
    });
    expect(pages.flat()).toEqual(ids);
    expect(pages.map(({ length }) => length)).toEqual([2, 2, 2, 2, 1]);
    expect(new Set(ids).size).toBe(ids.length);
    // Four pages, two notes, the manifest; the sound and the bundle are transactions. The nested bundle has no such tag.
    expect(ids).toHaveLength(9);
  });

  test("run reports errors as errors", async () => {
    await expect((await client()).run("{ nothing }")).rejects.toThrow();
  });
});

/** An amount as the index writes it: AR with twelve decimals. */
function arOf(winston: string): string {
  const digits = winston.padStart(13, "0");
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`;
}
