/**
 * Carrying authorizations out ourselves: a transaction of an account of ours, which pays for the gas.
 * @module
 */
import type { EvmSender } from "../evm/sender.ts";
import { writeAuthorizationCall } from "../evm/wallet-signature.ts";
import { domainOf } from "./check.ts";
import type { Settler } from "./settler.ts";
import type { X402Terms } from "./x402.ts";

/** Creates it. */
export function createDirectSettler(sender: Pick<EvmSender, "send">, terms: X402Terms): Settler {
  const domain = domainOf(terms);
  return async ({ authorization, signature }, onSending, signal) => {
    const call = writeAuthorizationCall(domain, authorization, signature);
    const outcome = await sender.send(call, onSending, signal);
    switch (outcome.kind) {
      case "sent":
      case "unknown":
      case "withheld":
        return outcome;
      case "reverts":
        return { kind: "refused", reason: outcome.reason };
      case "trouble":
        return { kind: "untried", reason: outcome.detail };
    }
  };
}
