/**
 * Gifts over HTTP: the credits of a link go to one address, once.
 *
 * The link is the only credential. GET redeems because published pages send GET; previews, prefetches and HEAD redeem
 * nothing, and a browser without an address gets a form.
 * Source: docs/reference/payment.md#gifts.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure, failures, rejected } from "../../failures.ts";
import { enumSchema, stringSchema } from "../../lib/value-schema.ts";
import { readAddressOfWord, tokenWords, type UserAddress } from "../../payment/addresses.ts";
import type { Gifts, Redemption } from "../../payment/top-ups/gifts.ts";
import { queryParameter, requiredParameter } from "../parameter.ts";
import { failureResponses, json, record, ref, type Schema, textSchema } from "../reference/openapi-types.ts";
import { readBody } from "../request-body.ts";
import { contextOf } from "../request-context.ts";
import { jsonResponse, noStore } from "../responses.ts";
import { described, type RouteDescription } from "../route-schema.ts";
import { dateTime, fromLedger, winc } from "./payment-common.ts";
import { giftForm, giftOutcome } from "./payment-pages.ts";
import { isoDate } from "./payment-records.ts";

export type GiftRoutesOptions = Readonly<{ gifts: Gifts }>;

/** Path of the routes, below the service's address. */
export const redeemPath = "/redeem";

/** A form of two short fields. Bytes. */
const formBytesMax = 4_096;

const giftSecret = stringSchema({ pattern: "^[A-Za-z0-9_-]{43}$" });
const sampleBytes = "A".repeat(43);

/** Distinguishes an email address from other text. */
const email = stringSchema({ pattern: "^[^\\s@]{1,64}@[^\\s@]{1,255}$" });

/** Parameters of the query or of the form; the word beside it decides which destinations are valid. */
const parameters = {
  secret: requiredParameter(queryParameter("id", giftSecret, "`giftId` of the top-up."), sampleBytes),
  destination: requiredParameter(
    queryParameter("destinationAddress", stringSchema({ minLength: 1 }), "The account that gets the credits."),
    sampleBytes,
  ),
  token: queryParameter("token", enumSchema(tokenWords), "Type of the address; `native` when absent."),
  addressType: queryParameter("destinationAddressType", enumSchema(tokenWords), "The same; `token` takes precedence."),
  email: queryParameter("email", email, "Not needed: no mail is sent."),
} as const;

/** The record of a redemption, as a component of the API reference. */
export const giftSchemas: Readonly<Record<string, Schema>> = {
  Redemption: record({
    message: textSchema,
    userBalance: winc,
    userAddress: textSchema,
    userCreationDate: dateTime,
  }),
};

const ofRedemption: RouteDescription = {
  tag: "Top-ups",
  summary: "Redeem a gift",
  description: "The gift's id redeems it, once. A browser that opens it without an address is shown a form.",
  parameters: Object.values(parameters),
  responses: {
    200: json("It is redeemed.", ref("Redemption")),
    ...failureResponses("payment_rejected", "database_unavailable"),
  },
};

type RedeemRequest = Readonly<{ secret: string; address: UserAddress }>;

export function createGiftRoutes({ gifts }: GiftRoutesOptions): AnyElysia {
  const redeem = ({ secret, address }: RedeemRequest) =>
    fromLedger("database_unavailable", gifts.redeem(secret, address));

  async function onGet(request: Request): Promise<Response> {
    const query = queryOf(request);
    const secret = query.get(parameters.secret.name) ?? "";
    const isOpened = wantsPage(request) && !query.has(parameters.destination.name) && parameters.secret.is(secret);
    if (isOpened) return giftForm(secret);
    const wanted = readRequest(query);
    if (isPrefetch(request)) return jsonResponse({ message: "Not redeemed" }, 200, noStore);
    return redeemedResponse(await redeem(wanted), wanted);
  }

  async function onPost(request: Request): Promise<Response> {
    const form = new URLSearchParams(new TextDecoder().decode(await readBody(request, formBytesMax)));
    const isPage = wantsPage(request);
    try {
      const wanted = readRequest(new URLSearchParams([...queryOf(request), ...form]));
      const redemption = await redeem(wanted);
      return isPage
        ? giftOutcome(`${redemption.winc} winc are on the account`, 200)
        : redeemedResponse(redemption, wanted);
    } catch (error) {
      if (!isPage || !(error instanceof Failure) || error.code !== "payment_rejected") throw error;
      return giftOutcome(String(error.context["reason"]), failures.payment_rejected.status);
    }
  }

  return new Elysia({ strictPath: true })
    .get(redeemPath, ({ request }) => onGet(request), { detail: described(ofRedemption) })
    .post(redeemPath, ({ request }) => onPost(request), {
      parse: "none",
      detail: described({ ...ofRedemption, description: `${ofRedemption.description} Also as a form.` }),
    });
}

/** @throws Failure `payment_rejected` with the reason. */
function readRequest(query: URLSearchParams): RedeemRequest {
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

function redeemedResponse({ winc, balance, since }: Redemption, { address }: RedeemRequest): Response {
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

/** Whether a browser shows the response. */
function wantsPage(request: Request): boolean {
  return (request.headers.get("accept") ?? "").includes("text/html");
}

/** Whether a program opens the link before a person does. */
function isPrefetch(request: Request): boolean {
  const purpose = request.headers.get("sec-purpose") ?? request.headers.get("purpose") ?? "";
  return contextOf(request).headOnly || purpose.includes("prefetch") || purpose.includes("preview");
}

function queryOf(request: Request): URLSearchParams {
  return new URLSearchParams(contextOf(request).target.query);
}

/** @throws Failure `payment_rejected` for an absent, empty or repeated parameter. */
function single(query: URLSearchParams, name: string): string {
  const [value, ...more] = query.getAll(name);
  if (!parameters.destination.is(value) || more.length > 0) throw rejected("Invalid or missing parameters");
  return value;
}
