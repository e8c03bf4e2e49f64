/**
 * The reads of the mixed load: content, its bundles and chunks, queries, and what an operator looks at.
 * @module
 */
import type { DevLine } from "../../test/support/program.ts";
import type { Random } from "../../test/support/random.ts";
import { jsonOf, type LoadClient } from "./soak-client.ts";
import { digestOf, type KnownItem, type KnownItems } from "./soak-items.ts";

/** Number of bundles from the queries that reads choose from, and of the newest of them. */
const bundlesMax = 100;
const bundlesNewest = 20;

const page = `query($after: String, $tags: [TagFilter!]) {
  transactions(first: 50, after: $after, tags: $tags, sort: HEIGHT_DESC) {
    pageInfo { hasNextPage }
    edges { cursor node { id owner { address } tags { name value } data { size } bundledIn { id } block { height } } }
  }
}`;

/** Reads of known items: whole, by ranges, by HEAD, and of ids that nothing has. */
export function createContentReads({ ask, wrong }: LoadClient, gateway: string, random: Random, known: KnownItems) {
  const range = async (url: string, { id, size }: KnownItem) => {
    if (size < 2) return;
    const start = random.below(size);
    const end = Math.min(size - 1, start + random.below(70_000));
    const ranged = await ask("range", url, { headers: { Range: `bytes=${start}-${end}` } }, [206, 416]);
    const isExact = ranged?.response.status === 416 || ranged?.body.length === end - start + 1;
    if (ranged !== undefined && !isExact) wrong("range: wrong size", `${id} ${start}-${end}`);
  };
  const whole = async (url: string, { id, digest, size }: KnownItem) => {
    const body = (await ask("read", url))?.body;
    if (body === undefined) return;
    if (body.length !== size || digestOf(body) !== digest) wrong("read: wrong bytes", `${id} of ${size}`);
  };
  return async (): Promise<void> => {
    const item = known.any();
    if (item === undefined) return;
    const url = `${gateway}/${random.below(2) === 0 ? item.id : `raw/${item.id}`}`;
    switch (random.below(8)) {
      case 0:
        await ask("head", url, { method: "HEAD" });
        return;
      case 1:
        return range(url, item);
      case 2:
        await ask("ranges", url, { headers: { Range: "bytes=0-9, 100-199, -5" } }, [206, 416]);
        return;
      case 3:
        await ask("ignored range", url, { headers: { Range: "x" } });
        return;
      case 4:
        await ask("absent", `${gateway}/${"A".repeat(42)}${"AQgw"[random.below(4)]}`, {}, [404]);
        return;
      default:
        return whole(url, item);
    }
  };
}

/** Queries of one page after the other, and reads of the bundles in them. */
export function createChainReads({ ask, wrong }: LoadClient, gateway: string, random: Random) {
  const bundles = new Set<string>();
  let after: string | undefined;
  return {
    query: async (): Promise<void> => {
      const tags = random.below(3) === 0 ? [{ name: "Kind", values: [`kind-${random.below(5)}`] }] : undefined;
      const body = JSON.stringify({ query: page, variables: { after, tags } });
      const headers = { "Content-Type": "application/json" };
      const reply = await ask("graphql", `${gateway}/graphql`, { method: "POST", headers, body });
      if (reply === undefined) return;
      const { data, errors } = jsonOf(reply);
      if (errors !== undefined) return wrong("graphql: errors", JSON.stringify(errors));
      const { edges, pageInfo } = data.transactions;
      for (const { node } of edges) if (node.bundledIn !== null) bundles.add(node.bundledIn.id);
      for (const id of bundles) if (bundles.size > bundlesMax) bundles.delete(id);
      after = pageInfo.hasNextPage ? edges.at(-1)?.cursor : undefined;
    },
    readChain: async (): Promise<void> => {
      const [id] = [...bundles].slice(-1 - random.below(Math.max(1, Math.min(bundlesNewest, bundles.size))));
      await ask("info", `${gateway}/info`);
      if (id === undefined) return;
      const offset = await ask("offset", `${gateway}/tx/${id}/offset`, {}, [200, 202, 404]);
      if (offset?.response.status === 200) await ask("chunk", `${gateway}/chunk/${jsonOf(offset).offset}`);
      await ask("bundle", `${gateway}/${id}`);
    },
  };
}

/** What monitoring and an operator read. */
export function createObservation({ ask }: LoadClient, { gateway, adminKey }: DevLine) {
  return async (): Promise<void> => {
    await ask("metrics", `${gateway}/metrics`);
    await ask("healthcheck", `${gateway}/svc/healthcheck`);
    await ask("debug", `${gateway}/svc/admin/debug`, { headers: { Authorization: `Bearer ${adminKey}` } });
  };
}
