/**
 * Controls of the development chain: mine, mint, reset. Only this machine may use them.
 *
 * A web page can make a browser send requests to this machine. Such a request has a foreign origin, is cross-site, or,
 * after DNS rebinding, has another host: it is rejected.
 * Source: docs/reference/gateway.md#development-controls; Fetch metadata (Sec-Fetch-Site).
 * @module
 */
import { type Context, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import type { Devnet } from "../devnet/devnet.ts";
import { infoText } from "./node-reads.ts";
import { nodeJson, nodeText } from "./node-responses.ts";

export type Control = "mine" | "mint" | "reset";

/** Resolves when other services show the effect of a control, or after a bounded wait. */
export type Shown = (control: Control) => Promise<void>;

/** Routes of the controls, for POST, and for GET because existing scripts use it. */
export function controlRoutes(devnet: Devnet, shown: Shown) {
  const mine = (count: string) =>
    orReason(async () => {
      const text = await mined(devnet, count);
      await shown("mine");
      return nodeJson(text);
    });
  const mint = (params: { address: string; amount: string }) =>
    orReason(async () => {
      const text = minted(devnet, params);
      await shown("mint");
      return nodeText(text);
    });
  const reset = async () => {
    devnet.reset();
    await shown("reset");
    return nodeText("reset done");
  };
  const own = { beforeHandle: rejectForeign, parse: "none" } as const;
  return new Elysia()
    .get("/mine", () => mine("1"), own)
    .post("/mine", () => mine("1"), own)
    .get("/mine/:count", ({ params }) => mine(params.count), own)
    .post("/mine/:count", ({ params }) => mine(params.count), own)
    .get("/mint/:address/:amount", ({ params }) => mint(params), own)
    .post("/mint/:address/:amount", ({ params }) => mint(params), own)
    .get("/reset", reset, own)
    .post("/reset", reset, own);
}

/** Runs a control; invalid input is 400 with the expected form, and a chain that was closed meanwhile 503. */
async function orReason(response: () => Response | Promise<Response>): Promise<Response> {
  try {
    return await response();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const statuses: Readonly<Record<string, number>> = { malformed_input: 400, busy: 503 };
    const status = statuses[error.code];
    if (status === undefined) throw error;
    return nodeText(`${error.context["reason"]}`, status);
  }
}

async function mined(devnet: Devnet, count: string): Promise<string> {
  await devnet.mine(/^\d{1,9}$/.test(count) ? Number(count) : 0);
  return infoText(devnet);
}

function minted(devnet: Devnet, { address, amount }: { address: string; amount: string }): string {
  return `${devnet.mint(address, /^\d{1,30}$/.test(amount) ? BigInt(amount) : 0n)}`;
}

/** Rejects requests of other machines and of pages of other sites. */
function rejectForeign({ request }: Pick<Context, "request">): Response | undefined {
  const host = hostOf(`http://${request.headers.get("host") ?? ""}`);
  if (!isLoopback(host)) return reject(`host "${host}" is not this machine`);
  const origin = request.headers.get("origin");
  if (origin !== null && !isLocalOrigin(origin)) return reject(`origin "${origin}" is not on this machine`);
  if (request.headers.get("sec-fetch-site") === "cross-site" && origin === null) {
    return reject("the request was made by a page of another site");
  }
  return undefined;
}

function reject(reason: string): Response {
  const text = `Controls of the devnet are for this machine only: ${reason.replace(/[^\x20-\x7e]/g, "?")}.`;
  return nodeText(text, 403, { "Cache-Control": "no-store" });
}

function isLocalOrigin(origin: string): boolean {
  const host = hostOf(origin);
  return isLoopback(host) || host.endsWith(".localhost");
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

/** The host of a URL without its port, in lower case; "" for an invalid URL. */
function hostOf(url: string): string {
  return URL.parse(url)?.hostname ?? "";
}
