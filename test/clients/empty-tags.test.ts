/**
 * Data items with empty tag names and values, made by the published libraries: taken as uploads, found in bundles that
 * others post, indexed and found again by their tags, and unbundled by the library.
 * Source: docs/compatibility.md (data items).
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { eventually } from "../support/until.ts";
import { arweaveKey, openTurbo } from "./turbo.ts";

type Tag = Readonly<{ name: string; value: string }>;

/** A row of the index. */
type Found = Readonly<{ id: string; tags: readonly Tag[]; bundledIn: Readonly<{ id: string }> | null }>;

/** Empty names, empty values, both, alone and beside others. */
const cases: readonly (readonly [string, readonly Tag[]])[] = [
  ["an empty name", [{ name: "", value: "named by nothing" }]],
  ["an empty value", [{ name: "Empty-Value", value: "" }]],
  ["an empty name and value", [{ name: "", value: "" }]],
  [
    "empty ones among others, twice",
    [
      { name: "App-Name", value: "Empty-Tags" },
      { name: "", value: "" },
      { name: "Empty-Value", value: "" },
      { name: "", value: "" },
    ],
  ],
];

describeWith(clientLibraries, "items with empty tag names or values", () => {
  let program: RunningProgram;

  beforeAll(async () => {
    program = await startDev({ environment: { UPLOAD_BUNDLE_WAIT_MS: "500", UPLOAD_CONFIRMATIONS: "1" } });
  }, 120_000);

  afterAll(() => program?.remove());

  test.each(cases)(
    "by arbundles, with %s: uploaded, read, found, bundled and unbundled",
    async (name, tags) => {
      const library = await import("@dha-team/arbundles");
      const signer = new library.ArweaveSigner(walletKey());
      const item = library.createData(`upload with ${name}`, signer, { tags: [...tags] });
      await item.sign(signer);
      const { id } = item;
      const body = Uint8Array.from(item.getRaw());
      expect(await library.DataItem.verify(Buffer.from(body))).toBe(true);
      const posted = await fetch(`${program.line.upload}/v1/tx`, { method: "POST", body });
      expect([posted.status, (await posted.json()).id]).toEqual([200, id]);
      expect(await (await fetch(`${program.line.gateway}/raw/${id}`)).text()).toBe(`upload with ${name}`);
      const bundleId = await bundleOf(id);
      const bundle = library.unbundleData(await dataOf(bundleId));
      expect(await bundle.verify()).toBe(true);
      const unbundled = bundle.items.find((each) => each.id === id);
      expect(unbundled?.tags).toEqual([...tags]);
      await expectFound(id, tags, bundleId);
    },
    120_000,
  );

  test("by arbundles, in a bundle that arweave-js posts, with every case and one nested", async () => {
    const library = await import("@dha-team/arbundles");
    const key = walletKey();
    const signer = new library.ArweaveSigner(key);
    const make = async (data: string | Uint8Array, tags: readonly Tag[]) => {
      const item = library.createData(data, signer, { tags: [...tags] });
      await item.sign(signer);
      return item;
    };
    const items = await Promise.all(cases.map(([name, tags]) => make(`bundled with ${name}`, tags)));
    const inner = await Promise.all(cases.map(([name, tags]) => make(`nested with ${name}`, tags)));
    const formatTags = [
      { name: "Bundle-Format", value: "binary" },
      { name: "Bundle-Version", value: "2.0.0" },
      { name: "", value: "" },
    ];
    const nested = await make((await library.bundleAndSignData(inner, signer)).getRaw(), formatTags);
    const bundle = await library.bundleAndSignData([...items, nested], signer);

    const { default: Arweave } = await import("arweave");
    const { hostname, port } = new URL(program.line.gateway);
    const arweave = Arweave.init({ host: hostname, port: Number(port), protocol: "http" });
    const transaction = await arweave.createTransaction({ data: bundle.getRaw() }, key);
    for (const { name, value } of formatTags.slice(0, 2)) transaction.addTag(name, value);
    await arweave.transactions.sign(transaction, key);
    expect((await arweave.transactions.post(transaction)).status).toBe(200);
    for (const [at, item] of items.entries()) await expectFound(item.id, cases[at]?.[1] ?? [], transaction.id);
    for (const [at, item] of inner.entries()) await expectFound(item.id, cases[at]?.[1] ?? [], nested.id);
    const { id: innerId = "" } = inner[0] ?? {};
    const read = await fetch(`${program.line.gateway}/raw/${innerId}`);
    expect(await read.text()).toBe("nested with an empty name");
  }, 120_000);

  describe("by turbo-sdk", () => {
    test.each(cases)(
      "with %s: uploaded, read and found",
      async (name, tags) => {
        const turbo = await openTurbo(program, arweaveKey(program));
        const data = `sent by the SDK with ${name}`;
        const { id } = await turbo.upload({ data, dataItemOpts: { tags: [...tags] } });
        expect(await (await fetch(`${program.line.gateway}/raw/${id}`)).text()).toBe(data);
        await expectFound(id, tags, await bundleOf(id));
      },
      120_000,
    );
  });

  function walletKey() {
    const file = program.line.wallets.find(({ name }) => name === "rsa")?.file;
    if (file === undefined) throw new Error("the program has no RSA wallet in a file");
    return JSON.parse(readFileSync(file, "utf8"));
  }

  /** The bundle on the chain that has an uploaded item. */
  async function bundleOf(id: string): Promise<string> {
    const status = await eventually(
      async () => await (await fetch(`${program.line.upload}/v1/tx/${id}/status`)).json(),
      ({ status }) => status === "FINALIZED",
    );
    return status.bundleId;
  }

  async function dataOf(id: string): Promise<Buffer> {
    return Buffer.from(await (await fetch(`${program.line.gateway}/raw/${id}`)).arrayBuffer());
  }

  /** The index has the item with its tags, in its bundle, and each of its tags finds it. */
  async function expectFound(id: string, tags: readonly Tag[], bundleId: string): Promise<void> {
    const found = await eventually(
      () => queried(`ids: ["${id}"]`),
      ([node]) => node?.bundledIn?.id === bundleId,
    );
    expect(found).toEqual([{ id, tags, bundledIn: { id: bundleId } }]);
    for (const { name, value } of tags) {
      const filter = `tags: [{ name: ${JSON.stringify(name)}, values: [${JSON.stringify(value)}] }], first: 100`;
      expect((await queried(filter)).map((node) => node.id)).toContain(id);
    }
  }

  async function queried(filter: string): Promise<Found[]> {
    const query = `{ transactions(${filter}) { edges { node { id tags { name value } bundledIn { id } } } } }`;
    const response = await fetch(`${program.line.gateway}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ query }),
    });
    const { data } = await response.json();
    return data.transactions.edges.map(({ node }: { node: Found }) => node);
  }
});
