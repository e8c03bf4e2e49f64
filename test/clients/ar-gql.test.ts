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

  test("tx gives every field that it asks for, of a transaction and of an item", async () => {
    const { sample, wallets } = program.line;
    const rsa = wallets.find(({ name }) => name === "rsa");
    const bundle = await (await client()).tx(sample.bundle);
    expect(bundle).toMatchObject({
      id: sample.bundle,
      recipient: "",
      owner: { address: rsa?.address },
      quantity: { winston: "0", ar: "0.000000000000" },
      block: { height: expect.any(Number), id: expect.stringMatching(/^[\w-]{64}$/) },
    });
    expect(bundle.tags).toContainEqual({ name: "Bundle-Format", value: "binary" });
    const manifest = await (await client()).tx(sample.manifest);
    expect(manifest.data.type).toBe("application/x.arweave-manifest+json");
    expect(await (await client()).fetchTxTag(sample.manifest, "App-Name")).toBe("Cairn-Sample");
  });

  test("all walks every page, and gives each row once", async () => {
    const query = `query($cursor: String) {
      transactions(first: 2, after: $cursor, tags: [{ name: "App-Name", values: ["Cairn-Sample"] }]) {
        pageInfo { hasNextPage } edges { cursor node { id } }
      }
    }`;
    const edges = await (await client()).all(query);
    const ids = edges.map(({ node }) => node.id);
    expect(new Set(ids).size).toBe(ids.length);
    // Four pages, two notes, the manifest; the sound and the bundle are transactions. The nested bundle has no such tag.
    expect(ids).toHaveLength(9);
  });

  test("run answers errors as errors", async () => {
    await expect((await client()).run("{ nothing }")).rejects.toThrow();
  });
});
