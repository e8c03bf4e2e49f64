/**
 * A chain with bundles on it that no index here knows, a node that serves it and may fail, and gateways that
 * know the places of items, or give false ones.
 * @module
 */
import type { Id } from "../../src/arweave/id.ts";
import type { Tag } from "../../src/arweave/tags.ts";
import { isChunkRequest } from "../chain/data-node.ts";
import { type FaultServer, type FaultyRequest, openFaultServer, type Result } from "../chain/fault-server.ts";
import { chunkPosts, openTestDevnet, post, rsa, serve, statedOf } from "../dev/devnet/support.ts";
import { bundleOf, bundleTags, type MadeItem, type MadePlace, placesIn } from "./bundles.ts";

/** A bundle on the chain. */
export type PostedBundle = Readonly<{
  rootId: Id;
  data: Uint8Array;
  places: ReadonlyMap<Id, MadePlace>;
  /** Of an item that is there. */
  place: (id: Id) => MadePlace;
}>;

/** The chain and its node. */
export type ItemFixture = Readonly<{
  /** Passes requests on to the chain's own node. */
  node: FaultServer;
  chunkRequests: () => number;
  /** Posts a transaction with data in chunks, and mines it. */
  postData: (data: Uint8Array, tags: readonly Tag[]) => Promise<Id>;
  postBundle: (items: readonly MadeItem[]) => Promise<PostedBundle>;
  /** The present chain. */
  mine: (count: number) => Promise<void>;
  close: () => Promise<void>;
}>;

/** Opens a chain. */
export async function openItemFixture(): Promise<ItemFixture> {
  const devnet = await openTestDevnet();
  const own = serve(devnet);
  const node = await openFaultServer(async (request) => {
    const response = await own.get(request.path);
    return { status: response.status, body: new Uint8Array(await response.arrayBuffer()) };
  });

  async function postData(data: Uint8Array, tags: readonly Tag[]): Promise<Id> {
    const { id } = await post(devnet, rsa, { stated: statedOf(data), tags });
    for (const body of chunkPosts(data)) {
      const outcome = devnet.postChunk(body);
      if (outcome.kind !== "stored") throw new Error(`the chain rejected a chunk: ${outcome.kind}`);
    }
    await devnet.mine(1);
    return id;
  }

  return {
    node,
    chunkRequests: () => node.requests.filter(isChunkRequest).length,
    postData,
    async postBundle(items) {
      const data = bundleOf(items);
      const rootId = await postData(data, bundleTags);
      const places = placesIn(data);
      const place = (id: Id) => {
        const found = places.get(id);
        if (found === undefined) throw new Error(`${id} is not in the bundle`);
        return found;
      };
      return { rootId, data, places, place };
    },
    mine: async (count) => {
      await devnet.mine(count);
    },
    close: async () => {
      await node.stop();
      await own.close();
      devnet.close();
    },
  };
}

/** A gateway that serves HEAD and GET of `/raw/{id}`, and queries for `bundledIn`. */
export type FakeGateway = FaultServer &
  Readonly<{
    /** Response headers of `/raw/{id}`, its body, and the bundle that the gateway reports. */
    raw: Map<Id, Readonly<{ headers: Readonly<Record<string, string>>; body: Uint8Array }>>;
    parents: Map<Id, Id | null>;
  }>;

/** Opens a gateway that knows nothing yet. */
export async function openFakeGateway(): Promise<FakeGateway> {
  const raw: FakeGateway["raw"] = new Map();
  const parents: FakeGateway["parents"] = new Map();
  const server = await openFaultServer((request) => {
    if (request.path === "/graphql") return queryResponse(parents, request);
    const [, first, id = ""] = request.path.split("/");
    const found = first === "raw" ? raw.get(id as Id) : undefined;
    if (found === undefined) return { status: 404, body: "Not Found" };
    const length = { "content-length": String(found.body.length) };
    return { status: 200, headers: { ...length, ...found.headers }, body: found.body };
  });
  return { ...server, raw, parents };
}

function queryResponse(parents: FakeGateway["parents"], { body }: FaultyRequest): Result {
  const { variables } = JSON.parse(new TextDecoder().decode(body));
  const id: Id = variables.id;
  const parent = parents.get(id);
  const transaction = parent === undefined ? null : { id, bundledIn: parent === null ? null : { id: parent } };
  return { status: 200, body: JSON.stringify({ data: { transaction } }) };
}

/** The headers in which a gateway reports the place of an item. */
export function rootHeaders(rootId: Id, { itemOffset, headerSize }: MadePlace): Record<string, string> {
  return {
    "x-ar-io-root-transaction-id": rootId,
    "x-ar-io-root-data-item-offset": String(itemOffset),
    "x-ar-io-root-data-offset": String(itemOffset + headerSize),
  };
}
