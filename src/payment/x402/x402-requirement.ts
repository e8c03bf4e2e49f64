/**
 * The payment requirement in both versions of the protocol.
 * Source: docs/reference/payment.md#x402.
 * @module
 */
import type { X402Terms } from "./x402.ts";

/** The resource as described to the payer. */
export type X402Resource = Readonly<{
  /** Absolute, or relative when the public address is unknown. */
  url: string;
  description: string;
  mimeType: string;
}>;

/** Version 1, the version of the specification's examples. */
export function requirementV1(terms: X402Terms, amount: bigint, resource: X402Resource) {
  const { network, payTo, timeoutSeconds } = terms;
  return {
    scheme: "exact",
    description: resource.description,
    network: network.nameV1,
    maxAmountRequired: amount.toString(),
    payTo,
    asset: network.asset.address,
    resource: resource.url,
    mimeType: resource.mimeType,
    maxTimeoutSeconds: timeoutSeconds,
    extra: { name: network.asset.name, version: network.asset.version },
  } as const;
}

/** Version 2, where the resource is a separate object. */
export function requirementV2({ network, payTo, timeoutSeconds }: X402Terms, amount: bigint) {
  return {
    scheme: "exact",
    network: network.name,
    amount: amount.toString(),
    asset: network.asset.address,
    payTo,
    maxTimeoutSeconds: timeoutSeconds,
    extra: { name: network.asset.name, version: network.asset.version },
  } as const;
}
