/**
 * A KYVE node's REST API on a socket, true to the protocol where we speak it: node info, the newest block,
 * transactions by hash, and the search by events with its pages, its errors and its index that follows with a delay.
 * Source: the Cosmos SDK's REST API (cosmos.tx.v1beta1, cosmos.base.tendermint.v1beta1), versions 0.47 and 0.50.
 * @module
 */

/** Coins of a message. */
export type KyveCoin = Readonly<{ denom: string; amount: string }>;

/** A transaction to put into a block. */
export type KyvePlan = Readonly<{
  messages: readonly Readonly<Record<string, unknown>>[];
  /** Accounts that its transfer events name as recipients, those of its messages unless given. */
  recipients?: readonly string[];
  memo?: string;
  fails?: boolean;
}>;

/** The node. */
export type KyveNode = Readonly<{
  url: string;
  /** Puts a transaction into a block of its own. @returns its hash, upper case. */
  send: (plan: KyvePlan) => string;
  advance: (blocks: number) => void;
  height: () => number;
  /** Blocks by which the search is behind. */
  indexDelay: (blocks: number) => void;
  /** Responses paths that contain the text with status 502. */
  reject: (text: string | undefined) => void;
  /** Paths with their queries, in order. */
  requests: string[];
  close: () => Promise<void>;
}>;

type Sent = Readonly<{
  hash: string;
  height: number;
  recipients: readonly string[];
  tx: unknown;
  response: unknown;
}>;

/** A plain payment. */
export function kyveSend(from: string, to: string, amount: bigint, denom = "ukyve") {
  return {
    "@type": "/cosmos.bank.v1beta1.MsgSend",
    from_address: from,
    to_address: to,
    amount: [{ denom, amount: `${amount}` }],
  };
}

/** Opens a node on a free port. @param sdk - Version whose search parameter is read. */
export function openKyveNode({ chainId = "kyve-1", sdk = "0.50" as "0.47" | "0.50" } = {}): KyveNode {
  const sent: Sent[] = [];
  const requests: string[] = [];
  let height = 1_000;
  let delay = 0;
  let rejected: string | undefined;

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      const { pathname, search, searchParams } = new URL(request.url);
      requests.push(`${pathname}${search}`);
      if (rejected !== undefined && request.url.includes(rejected)) return new Response("Bad Gateway", { status: 502 });
      if (pathname === "/cosmos/base/tendermint/v1beta1/node_info")
        return Response.json({
          default_node_info: { network: chainId, version: "0.38.12" },
          application_version: {},
        });
      if (pathname === "/cosmos/base/tendermint/v1beta1/blocks/latest") return Response.json(latest());
      if (pathname === "/cosmos/tx/v1beta1/txs") return find(searchParams);
      const hash = /^\/cosmos\/tx\/v1beta1\/txs\/(.+)$/.exec(pathname)?.[1];
      return hash === undefined ? failed(501, 12, "Not Implemented") : one(hash);
    },
  });

  const latest = () => {
    const header = { chain_id: chainId, height: `${height}` };
    return { block_id: { hash: "" }, block: { header }, sdk_block: { header } };
  };

  const one = (hash: string) => {
    if (!/^[0-9A-Fa-f]{64}$/.test(hash)) return failed(400, 3, "invalid tx hash");
    const found = sent.find((each) => each.hash === hash.toUpperCase());
    if (found === undefined) return failed(404, 5, `tx not found: ${hash}`);
    return Response.json({ tx: found.tx, tx_response: found.response });
  };

  const find = (parameters: URLSearchParams) => {
    const query = sdk === "0.50" ? (parameters.get("query") ?? "") : parameters.getAll("events").join(" AND ");
    if (query === "") return failed(400, 3, "query cannot be empty");
    const matches = sent.filter((each) => each.height <= height - delay && query.split(" AND ").every(holds(each)));
    const page = Number(parameters.get("page") ?? "1");
    const limit = Math.min(Number(parameters.get("limit") ?? "100"), 100);
    const pages = Math.max(1, Math.ceil(matches.length / limit));
    if (page > pages) return failed(500, 2, `page should be within [1, ${pages}] range, given ${page}`);
    const some = matches.slice((page - 1) * limit, page * limit);
    return Response.json({
      txs: some.map(({ tx }) => tx),
      tx_responses: some.map(({ response }) => response),
      pagination: null,
      total: `${matches.length}`,
    });
  };

  return {
    url: `http://127.0.0.1:${server.port}`,
    send: ({ messages, memo = "", fails = false, recipients }) => {
      height += 1;
      const hash = new Bun.CryptoHasher("sha256").update(`${height} ${chainId}`).digest("hex").toUpperCase();
      const tx = {
        "@type": "/cosmos.tx.v1beta1.Tx",
        body: { messages, memo, timeout_height: "0" },
        signatures: [""],
      };
      const named = recipients ?? messages.flatMap(recipientsOf);
      const response = {
        height: `${height}`,
        txhash: hash,
        code: fails ? 5 : 0,
        codespace: fails ? "sdk" : "",
        tx,
      };
      sent.push({ hash, height, recipients: named, tx, response });
      return hash;
    },
    advance: (blocks) => {
      height += blocks;
    },
    height: () => height,
    indexDelay: (blocks) => {
      delay = blocks;
    },
    reject: (text) => {
      rejected = text;
    },
    requests,
    close: () => server.stop(true),
  };
}

function recipientsOf(message: Readonly<Record<string, unknown>>): readonly string[] {
  const { to_address, outputs } = message as {
    to_address?: string;
    outputs?: readonly { address: string }[];
  };
  return [...(to_address === undefined ? [] : [to_address]), ...(outputs ?? []).map(({ address }) => address)];
}

/** One condition of a query, in CometBFT's syntax. */
function holds({ height, recipients }: Sent) {
  return (condition: string): boolean => {
    const recipient = /^transfer\.recipient='([a-z0-9]+)'$/.exec(condition)?.[1];
    if (recipient !== undefined) return recipients.includes(recipient);
    const [, operator, bound] = /^tx\.height(>=|<=)(\d+)$/.exec(condition) ?? [];
    if (operator === undefined) throw new Error(`this node does not know ${condition}`);
    return operator === ">=" ? height >= Number(bound) : height <= Number(bound);
  };
}

function failed(status: number, code: number, message: string): Response {
  return Response.json({ code, message, details: [] }, { status });
}
