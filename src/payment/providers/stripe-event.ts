/**
 * An event as Stripe reports it.
 * @module
 */
import type { JsonObject } from "../../lib/json.ts";

/** Something that happened at Stripe. */
export type StripeEvent = Readonly<{
  id: string;
  type: string;
  /** Unix ms. */
  createdAt: number;
  /** What it happened to, as it was then. */
  object: JsonObject;
}>;
