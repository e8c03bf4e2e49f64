/**
 * Gifts over HTTP: what a link holds goes to an address, once.
 *
 * Whoever has the link is who may redeem it. The route answers GET because links are opened; what opens links without
 * being asked (previews, prefetches, questions about headers) redeems nothing.
 * Source: reference/payment.md §1 (redeem), §8 G.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import { Failure } from "../../failures.ts";
import { readAddressOfWord } from "../../payment/addresses.ts";
import type { Gifts } from "../../payment/gifts.ts";
import { jsonAnswer } from "../answers.ts";
import { contextOf } from "../context.ts";
import { isoDate } from "./credit-records.ts";
import { noStore } from "./signer.ts";
import { fromLedger } from "./unavailable.ts";

/** What the routes ask. */
export type GiftRoutesOptions = Readonly<{ gifts: Gifts }>;

/** Enough to tell an address for mail from other text. */
const emailPattern = /^[^\s@]{1,64}@[^\s@]{1,255}$/;

/** Creates the routes. */
export function createGiftRoutes({ gifts }: GiftRoutesOptions): AnyElysia {
  const redeem = async (request: Request): Promise<Response> => {
    const query = new URLSearchParams(contextOf(request).target.query);
    const secret = single(query, "id");
    const word = query.get("token") ?? query.get("destinationAddressType") ?? "native";
    const address = readAddressOfWord(single(query, "destinationAddress"), word)?.address;
    if (address === undefined) throw refused("Provided destination address is not a valid native address!");
    const email = query.get("email");
    if (email !== null && !emailPattern.test(email))
      throw refused("Provided recipient email address is not a valid email!");
    if (isUnasked(request)) return jsonAnswer({ message: "Not redeemed" }, 200, noStore);
    const { winc, balance, since } = await gifts.redeem(secret, address);
    return jsonAnswer(
      {
        message: `Payment receipt redeemed for ${winc} winc!`,
        userBalance: balance.toString(),
        userAddress: address,
        userCreationDate: isoDate(since),
      },
      200,
      noStore,
    );
  };
  const answer = ({ request }: Readonly<{ request: Request }>) =>
    fromLedger("database_unavailable", redeem(request));
  return new Elysia({ strictPath: true }).get("/redeem", answer).post("/redeem", answer, { parse: "none" });
}

/** Whether a program looks before a person does. */
function isUnasked(request: Request): boolean {
  const purpose = request.headers.get("sec-purpose") ?? request.headers.get("purpose") ?? "";
  return contextOf(request).headOnly || purpose.includes("prefetch") || purpose.includes("preview");
}

/** @throws Failure `payment_refused` where it is missing or stands twice. */
function single(query: URLSearchParams, name: string): string {
  const [value, ...more] = query.getAll(name);
  if (value === undefined || value === "" || more.length > 0) throw refused("Invalid or missing parameters");
  return value;
}

function refused(reason: string): Failure {
  return new Failure("payment_refused", { reason });
}
