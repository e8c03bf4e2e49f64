/**
 * The gateway's surface on a real socket, over whatever content, index and nodes a test gives it.
 * @module
 */
import net from "node:net";
import { createNodes, type Nodes } from "../../src/chain/nodes.ts";
import { createHealth, type Health } from "../../src/gateway/health.ts";
import { relayedFault } from "../../src/gateway/relayed-check.ts";
import { type BodyMemory, createBodyMemory } from "../../src/http/body-memory.ts";
import {
  createGateway,
  type Gateway,
  type GatewayOptions,
  type GatewayReader,
} from "../../src/http/gateway/gateway.ts";
import type { Certificate } from "../../src/http/listener.ts";
import { createRequestMetrics } from "../../src/http/request-metrics.ts";
import type { HttpServer } from "../../src/http/server.ts";
import { createMetrics } from "../../src/lib/metrics.ts";
import { checkChunkAtOnce } from "../chain/data-node.ts";
import { openServer } from "./http-server.ts";
import { openTestManifests } from "./large-manifests.ts";
import { createRecordingLog } from "./recording-log.ts";

/** A gateway that listens. */
export type GatewayServer = Readonly<{
  gateway: Gateway;
  server: HttpServer;
  health: Health;
  memory: BodyMemory;
  url: string;
  /** Log lines so far, parsed. */
  lines: Record<string, unknown>[];
  close: () => Promise<void>;
}>;

/** What a test gives; the rest is as under `dev` without a root host. */
export type GatewayServerOptions = Readonly<{
  content: GatewayOptions["content"];
  reader?: GatewayReader;
  nodes?: Nodes;
  settings?: Partial<GatewayOptions["settings"]>;
  health?: Partial<Parameters<typeof createHealth>[0]>;
  names?: GatewayOptions["names"];
  graphql?: GatewayOptions["graphql"];
  administration?: GatewayOptions["administration"];
  events?: GatewayOptions["events"];
  isTrustedProxy?: (address: string) => boolean;
  certificate?: Certificate | undefined;
  /** Limits of the memory of bodies; by default those of the settings. */
  memory?: Partial<Omit<Parameters<typeof createBodyMemory>[0], "metrics">>;
  /** Milliseconds since the epoch; by default the system clock. */
  clock?: () => number;
}>;

/** Opens a gateway on a free port of the loopback address. */
export function openGatewayServer(options: GatewayServerOptions): GatewayServer {
  const clock = options.clock ?? Date.now;
  const { log, lines } = createRecordingLog(clock);
  const metrics = createMetrics();
  const nodes = options.nodes ?? createNodes([], { clock, random: () => 0.5, log });
  const health = createHealth({ clock, checks: [], notes: [], readiness: [], ...options.health });
  const largeManifests = openTestManifests({ clock, log });
  const gateway = createGateway({
    reader: options.reader ?? emptyReader,
    content: options.content,
    blockList: {
      isBlockedId: () => false,
      isBlockedDigest: () => false,
      hasBlockedDigests: () => false,
      isBlockedWithin: () => false,
      isBlockedUnder: () => false,
    },
    nodes,
    chunkNodes: nodes,
    checkChunk: checkChunkAtOnce,
    names: options.names ?? { resolve: async () => ({ kind: "absent" }) },
    peers: {
      gateways: () => [{ url: "https://gateway.example", dataWeight: 50, chunkWeight: 50 }],
      nodes: () => [],
    },
    checkRelayed: async (job) => relayedFault(job),
    largeManifests,
    listeners: { onTransaction: async () => undefined, onChunk: () => undefined },
    graphql: options.graphql,
    administration: options.administration,
    events: options.events,
    info: {
      wallet: undefined,
      processId: undefined,
      unbundleFilter: { always: true },
      indexFilter: { never: true },
      release: "0.0.0-test",
      services: {},
      features: [],
      limits: undefined,
    },
    health,
    metrics,
    clock,
    settings: {
      rootHosts: [],
      isolation: "auto",
      redirectAll: false,
      sandboxScheme: undefined,
      apex: undefined,
      notFoundPage: { id: undefined, name: undefined },
      sendsArweaveHeaders: false,
      coldBufferBytes: 8 * 2 ** 20,
      responseCacheBytesMax: 16 * 2 ** 20,
      ...options.settings,
    },
  });
  const memory = createBodyMemory({
    responseBytesMax: 256 * 2 ** 20,
    requestBytesMax: 128 * 2 ** 20,
    ...options.memory,
    metrics,
  });
  const server = openServer({
    hostname: "127.0.0.1",
    port: 0,
    app: gateway.app,
    cachedResponse: gateway.hit,
    withoutRouter: gateway.finalRecord,
    failurePage: gateway.failurePage,
    pathOf: gateway.pathOf,
    bodyBytesMax: 16 * 2 ** 20,
    memory,
    certificate: options.certificate,
    log,
    stats: createRequestMetrics(metrics, log),
    ...(options.isTrustedProxy === undefined ? {} : { isTrustedProxy: options.isTrustedProxy }),
  });
  return {
    gateway,
    server,
    health,
    memory,
    url: server.url,
    lines,
    close: async () => {
      await server.close(1_000);
      await largeManifests.close();
    },
  };
}

/** A response as it came over the wire. */
export type WireResponse = Readonly<{
  status: number;
  /** Names in lower case, in order of arrival; a name that came twice is there twice. */
  headers: readonly (readonly [string, string])[];
  body: Buffer;
  /** How the connection ended: by the server, cut by it, or left open until the test closed it. */
  end: "closed" | "reset" | "open";
}>;

/**
 * Sends bytes and reads one response, without a client library, which would hide details.
 *
 * @param head - Request line and headers, lines joined by "\r\n", without the empty line; Host is added when absent.
 * @param waitMs - A response that is not complete by then is given as far as it came.
 */
export function wire(port: number, head: string, waitMs = 20_000): Promise<WireResponse> {
  const host = /^host:/im.test(head) ? "" : `Host: 127.0.0.1:${port}\r\n`;
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, "127.0.0.1");
    const pieces: Buffer[] = [];
    let end: WireResponse["end"] = "open";
    const timer = setTimeout(() => socket.destroy(), waitMs);
    socket.on("data", (piece: Buffer) => {
      pieces.push(piece);
      if (isComplete(Buffer.concat(pieces), head.startsWith("HEAD"))) socket.destroy();
    });
    socket.on("end", () => {
      end = "closed";
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNRESET" || error.code === "EPIPE") end = "reset";
      else reject(error);
    });
    socket.on("close", () => {
      clearTimeout(timer);
      resolve({ ...readResponse(Buffer.concat(pieces)), end });
    });
    socket.write(`${head}\r\n${host}\r\n`);
  });
}

/** All values of a header in order of arrival, joined by " | "; "" when it is absent. */
export function header({ headers }: WireResponse, name: string): string {
  const found = headers.filter(([each]) => each === name.toLowerCase());
  return found.map(([, value]) => value).join(" | ");
}

function isComplete(bytes: Buffer, headOnly: boolean): boolean {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd === -1) return false;
  const { status, headers, body } = readResponse(bytes);
  if (headOnly || status === 304 || status === 204) return true;
  const length = headers.find(([name]) => name === "content-length")?.[1];
  if (length !== undefined) return body.length >= Number(length);
  return bytes.subarray(-5).toString() === "0\r\n\r\n";
}

function readResponse(bytes: Buffer): Omit<WireResponse, "end"> {
  const headEnd = bytes.indexOf("\r\n\r\n");
  const [first = "", ...lines] = bytes
    .subarray(0, headEnd === -1 ? 0 : headEnd)
    .toString("latin1")
    .split("\r\n");
  const headers = lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  return { status: Number(first.split(" ")[1] ?? 0), headers, body: bytes.subarray(headEnd + 4) };
}

/** An index in which nothing was followed. */
export const emptyReader: GatewayReader = {
  tip: () => undefined,
  block: () => undefined,
  blockText: () => undefined,
  finalBlock: () => undefined,
  finalTransaction: () => undefined,
  invalidItems: () => undefined,
  itemsWithin: () => [],
  locate: () => undefined,
  transactionAt: () => undefined,
  transactionRecord: () => undefined,
  transactionStatus: () => undefined,
  transactionText: () => undefined,
  transactionsOfBlock: () => [],
  weaveSpan: () => undefined,
};
