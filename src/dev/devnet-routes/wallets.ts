/**
 * Node API routes for accounts and prices.
 * Source: ArweaveTeam/arweave, ar_http_iface_middleware, ar_wallet (checksums of addresses).
 * @module
 */
import { crc32 } from "node:zlib";
import { Elysia } from "elysia";
import { type Address, isAddress, readAddress } from "../../arweave/id.ts";
import { decodeBase64url, encodeBase64url } from "../../lib/base64url.ts";
import { devnetFee } from "../devnet/chain-rules.ts";
import type { Devnet } from "../devnet/devnet.ts";
import { nodeError, nodeJson, nodeText } from "./node-responses.ts";

/** Sizes beyond this many digits are no sizes. */
const sizeDigitsMax = 78;

/** Routes of accounts and prices. */
export function walletRoutes(devnet: Devnet) {
  const balance = (address: Address | undefined) => (address && devnet.account(address)?.balance) ?? 0n;
  const lastTx = (address: Address | undefined) => (address && devnet.account(address)?.lastTx) ?? "";
  return new Elysia()
    .get("/wallet/:address/balance", ({ params }) => ofAddress(params.address, (address) => `${balance(address)}`))
    .get("/wallet/:address/last_tx", ({ params }) => ofAddress(params.address, lastTx))
    .get("/wallet/:address/reserved_rewards_total", ({ params }) => ofAddress(params.address, () => "0"))
    .get("/total_supply", () => nodeText(`${devnet.supply()}`))
    .get("/inflation/:height", ({ params }) =>
      /^\d+$/.test(params.height) ? nodeText("0") : nodeError("height_must_be_an_integer"),
    )
    .use(priceRoutes(devnet));
}

function priceRoutes(devnet: Devnet) {
  const text = (size: string, target: string | undefined, request: Request) =>
    priceResponse(devnet, size, target, wantsJson(request));
  const json = (size: string, target?: string) => priceResponse(devnet, size, target, true);
  return new Elysia()
    .get("/price/:size", ({ params, request }) => text(params.size, undefined, request))
    .get("/price/:size/:target", ({ params, request }) => text(params.size, params.target, request))
    .get("/v2price/:size", ({ params, request }) => text(params.size, undefined, request))
    .get("/v2price/:size/:target", ({ params, request }) => text(params.size, params.target, request))
    .get("/price2/:size", ({ params }) => json(params.size))
    .get("/price2/:size/:target", ({ params }) => json(params.size, params.target))
    .get("/optimistic_price/:size", ({ params }) => json(params.size))
    .get("/optimistic_price/:size/:target", ({ params }) => json(params.size, params.target));
}

function priceResponse(devnet: Devnet, sizeText: string, targetText: string | undefined, asJson: boolean): Response {
  const target = targetText === undefined ? undefined : readChecksummed(targetText);
  if (targetText !== undefined && target === undefined) return nodeText("Invalid address.", 400);
  if (!/^\+?\d+$/.test(sizeText) || sizeText.length > sizeDigitsMax) return nodeError("size_must_be_an_integer");
  const fee = devnetFee(BigInt(sizeText), recipientOf(devnet, target));
  const headers = { "arweave-denomination": "1" };
  return asJson
    ? nodeJson(JSON.stringify({ fee: `${fee}`, denomination: 1 }), 200, headers)
    : nodeText(`${fee}`, 200, headers);
}

function recipientOf(devnet: Devnet, target: string | undefined): "none" | "known" | "new" {
  if (target === undefined) return "none";
  const address = readAddress(target);
  return address !== undefined && devnet.account(address) !== undefined ? "known" : "new";
}

/** A client that takes JSON first; one that takes anything gets what it always got. */
function wantsJson(request: Request): boolean {
  return request.headers.get("accept") === "application/json";
}

function ofAddress(text: string, response: (address: Address | undefined) => string): Response {
  const address = readChecksummed(text);
  return address === undefined ? nodeText("Invalid address.", 400) : nodeText(response(readAddress(address)));
}

/** Parses an address of 20 to 64 bytes, with or without its checksum. @returns The address without the checksum. */
function readChecksummed(text: string): string | undefined {
  const [address = "", checksum, ...more] = text.split(":");
  const bytes = isAddress(address) ? Buffer.from(address, "base64url") : decodeBase64url(address);
  if (bytes === undefined || more.length > 0 || bytes.length < 20 || bytes.length > 64) return undefined;
  if (checksum === undefined) return address;
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(bytes));
  return checksum === encodeBase64url(sum) ? address : undefined;
}
