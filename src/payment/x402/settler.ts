/**
 * How an authorization is carried out. Types only.
 * @module
 */
import type { Authorization } from "../evm/authorization.ts";

/** What is to be carried out. */
export type SettlementOrder = Readonly<{
  version: 1 | 2;
  authorization: Authorization;
  signature: Uint8Array;
  /** What was asked for; the authorization's value, or less in version 1. */
  resource: string;
}>;

/** What came of it. None of these is believed without the chain. */
export type Carried =
  /** It is said to be on its way, or done. */
  | Readonly<{ kind: "sent"; transaction: string | undefined }>
  /** It may be on its way. */
  | Readonly<{ kind: "unknown"; transaction: string | undefined; reason: string }>
  /** It is said that it cannot be carried out, and that nothing was sent. */
  | Readonly<{ kind: "refused"; reason: string }>
  /** Nothing was sent: it could not be tried. */
  | Readonly<{ kind: "untried"; reason: string }>
  /** Nothing was sent: `onSending` said no. */
  | Readonly<{ kind: "withheld" }>;

/**
 * Carries authorizations out.
 *
 * @param onSending - Waited for before anything leaves that could move money, with the transaction where it is known;
 *   when it says no, or rejects, nothing leaves.
 */
export type Settler = (
  order: SettlementOrder,
  onSending: (transaction: string | undefined) => Promise<boolean>,
  signal: AbortSignal,
) => Promise<Carried>;
