/**
 * Gifts over HTTP: what a link holds goes to an address, once.
 *
 * Whoever has the link may redeem it. GET redeems because published pages ask so; what opens links without being asked
 * (previews, prefetches, questions about headers) redeems nothing, and a person who opens one is asked for an address.
 * Source: docs/reference/payment.md#gifts.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure, failures } from "../../failures.ts";
import { readAddressOfWord, type UserAddress } from "../../payment/addresses.ts";
import { rejected } from "../../payment/rejection.ts";
import type { Gifts, Redemption } from "../../payment/top-ups/gifts.ts";
import { readBody } from "../body.ts";
import { contextOf } from "../context.ts";
import { jsonResponse } from "../responses.ts";
import { isoDate } from "./credit-records.ts";
import { giftForm, giftOutcome } from "./gift-page.ts";
import { giftParameters as parameters } from "./parameters.ts";
import { noStore } from "./signer.ts";
import { fromLedger } from "./unavailable.ts";

/** What the routes ask. */
export type GiftRoutesOptions = Readonly<{ gifts: Gifts }>;

/** Path of the routes, below the service's address. */
export const redeemPath = "/redeem";

/** A form of two short fields. Bytes. */
const formBytesMax = 4_096;

/** What is asked for. */
type Wish = Readonly<{ secret: string; address: UserAddress }>;

/** Creates the routes. */
export function createGiftRoutes({ gifts }: GiftRoutesOptions): AnyElysia {
  const redeem = ({ secret, address }: Wish) => fromLedger("database_unavailable", gifts.redeem(secret, address));

  async function onGet(request: Request): Promise<Response> {
    const query = queryOf(request);
    const secret = query.get(parameters.secret.name) ?? "";
    const isOpened = wantsPage(request) && !query.has(parameters.destination.name) && parameters.secret.is(secret);
    if (isOpened) return giftForm(secret);
    const wish = readWish(query);
    if (isUnasked(request)) return jsonResponse({ message: "Not redeemed" }, 200, noStore);
    return redeemedResponse(await redeem(wish), wish);
  }

  async function onPost(request: Request): Promise<Response> {
    const form = new URLSearchParams(new TextDecoder().decode(await readBody(request, formBytesMax)));
    const isPage = wantsPage(request);
    try {
      const wish = readWish(new URLSearchParams([...queryOf(request), ...form]));
      const redemption = await redeem(wish);
      return isPage
        ? giftOutcome(`${redemption.winc} winc are on the account`, 200)
        : redeemedResponse(redemption, wish);
    } catch (error) {
      if (!isPage || !(error instanceof Failure) || error.code !== "payment_rejected") throw error;
      return giftOutcome(String(error.context["reason"]), failures.payment_rejected.status);
    }
  }

  return new Elysia({ strictPath: true })
    .get(redeemPath, ({ request }) => onGet(request))
    .post(redeemPath, ({ request }) => onPost(request), { parse: "none" });
}

/** @throws Failure `payment_rejected` with the reason. */
function readWish(query: URLSearchParams): Wish {
  const secret = single(query, parameters.secret.name);
  const destination = single(query, parameters.destination.name);
  const word = query.get(parameters.token.name) ?? query.get(parameters.addressType.name) ?? "native";
  const address = readAddressOfWord(destination, word)?.address;
  if (address === undefined) throw rejected("Provided destination address is not a valid native address!");
  const email = query.get(parameters.email.name);
  if (email !== null && !parameters.email.is(email))
    throw rejected("Provided recipient email address is not a valid email!");
  return { secret, address };
}

function redeemedResponse({ winc, balance, since }: Redemption, { address }: Wish): Response {
  return jsonResponse(
    {
      message: `Payment receipt redeemed for ${winc} winc!`,
      userBalance: balance.toString(),
      userAddress: address,
      userCreationDate: isoDate(since),
    },
    200,
    noStore,
  );
}

/** Whether a person looks. */
function wantsPage(request: Request): boolean {
  return (request.headers.get("accept") ?? "").includes("text/html");
}

/** Whether a program looks before a person does. */
function isUnasked(request: Request): boolean {
  const purpose = request.headers.get("sec-purpose") ?? request.headers.get("purpose") ?? "";
  return contextOf(request).headOnly || purpose.includes("prefetch") || purpose.includes("preview");
}

function queryOf(request: Request): URLSearchParams {
  return new URLSearchParams(contextOf(request).target.query);
}

/** @throws Failure `payment_rejected` where it is missing or stands twice. */
function single(query: URLSearchParams, name: string): string {
  const [value, ...more] = query.getAll(name);
  // Any text that is not empty: what it is for says its caller.
  if (!parameters.destination.is(value) || more.length > 0) throw rejected("Invalid or missing parameters");
  return value;
}
