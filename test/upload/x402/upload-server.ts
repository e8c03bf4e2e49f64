/**
 * Uploads that come with their payment, on a real socket, beside uploads in parts: put together as the program does.
 * @module
 */
import { Elysia } from "elysia";
import { arweave } from "../../../src/arweave/signers/arweave.ts";
import { createRequestMetrics } from "../../../src/http/request-metrics.ts";
import type { HttpServer } from "../../../src/http/server.ts";
import { createMultipartRoutes } from "../../../src/http/upload/multipart-routes.ts";
import { createReceiptWriter } from "../../../src/http/upload/upload-responses.ts";
import { createPaidUploadCreator } from "../../../src/http/upload/x402-upload-payments.ts";
import { createX402UploadRoutes } from "../../../src/http/upload/x402-upload-routes.ts";
import { decodeBase64url } from "../../../src/lib/base64url.ts";
import type { Clock } from "../../../src/lib/clock.ts";
import { silentLog } from "../../../src/lib/log.ts";
import { createMetrics } from "../../../src/lib/metrics.ts";
import type { Credits } from "../../../src/payment/credits/credits.ts";
import type { X402 } from "../../../src/payment/x402/x402.ts";
import { openPool } from "../../../src/threads/pool.ts";
import { createItemSigner } from "../../../src/upload/upload-signing.ts";
import { createX402Uploads, type X402UploadsParts } from "../../../src/upload/x402/x402-uploads.ts";
import { createBlockList } from "../../support/block-lists.ts";
import { openServer } from "../../support/http-server.ts";
import type { MultipartFixture } from "../multipart/multipart-fixture.ts";

/** What it is opened with. */
export type X402UploadServerOptions = Readonly<{
  x402: X402;
  fixture: MultipartFixture;
  /** That of uploads. */
  folder: string;
  /** Key (JWK) that signs for those who have none, RSA of 4096 bits: a file, and its modulus, base64url. */
  key: Readonly<{ file: string; modulus: string }>;
  credits: Credits;
  rules: X402UploadsParts["rules"];
  clock: Clock;
  blockList?: X402UploadsParts["blockList"];
}>;

/** A listener with the routes, at the root and below `/v1`. */
export type X402UploadServer = Readonly<{ server: HttpServer; close: () => Promise<void> }>;

/** Opens it on a free port of the loopback address. */
export function openX402UploadServer(options: X402UploadServerOptions): X402UploadServer {
  const { x402, fixture, folder, key, credits, rules, clock } = options;
  const pool = openPool({ entry: "sign", threads: 1, queueMax: 100, timeoutMs: 60_000, idleMs: 60_000 });
  const owner = decodeBase64url(key.modulus) ?? new Uint8Array(0);
  const uploads = createX402Uploads({
    x402,
    intake: fixture.intake,
    multipart: fixture.multipart,
    drop: fixture.sweep.drop,
    nameOf: fixture.writers.nameOf,
    credits,
    rules,
    log: silentLog,
    clock,
    checkReady: () => undefined,
    blockList: options.blockList ?? createBlockList(),
    signer: createItemSigner({ folder, pool, keyFile: key.file, key: { scheme: arweave, owner } }),
  });
  const publicUrl = () => "http://localhost:3002";
  const writeReceipt = createReceiptWriter({
    publicKey: "key",
    sign: async (terms) => `signature of ${JSON.stringify(terms)}`,
    hosts: () => ["gateway.example"],
  });
  const createPaid = createPaidUploadCreator(uploads, publicUrl);
  const place = (prefix: string) =>
    new Elysia({ prefix, strictPath: true })
      .use(createX402UploadRoutes({ uploads, intake: fixture.intake, writeReceipt, publicUrl }))
      .use(createMultipartRoutes({ multipart: fixture.multipart, createPaid, writeReceipt }));
  const server = openServer({
    hostname: "127.0.0.1",
    port: 0,
    bodyBytesMax: 50_000_000,
    log: silentLog,
    app: new Elysia({ strictPath: true }).use(place("")).use(place("/v1")),
    stats: createRequestMetrics(createMetrics(), silentLog),
  });
  return {
    server,
    close: async () => {
      await server.close(1_000);
      await pool.close();
    },
  };
}
