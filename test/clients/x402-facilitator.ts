/**
 * The published facilitator of x402 behind a socket, for a chain that runs here: both versions of the protocol.
 * @module
 */
import type { Anvil } from "./anvil.ts";

/** A facilitator at work. */
export type PublishedFacilitator = Readonly<{
  url: string;
  /** Paths that were asked so far. */
  asked: readonly string[];
  close: () => Promise<void>;
}>;

/** Starts one. @param key - Of the account that pays for the gas. */
export async function openPublishedFacilitator(anvil: Anvil, key: string): Promise<PublishedFacilitator> {
  const { createWalletClient, defineChain, http, publicActions } = await import("viem");
  const { privateKeyToAccount } = await import("viem/accounts");
  const { x402Facilitator } = await import("@x402/core/facilitator");
  const { toFacilitatorEvmSigner } = await import("@x402/evm");
  const { ExactEvmScheme } = await import("@x402/evm/exact/facilitator");
  const { ExactEvmSchemeV1 } = await import("@x402/evm/exact/v1/facilitator");
  const chain = defineChain({
    id: anvil.chainId,
    name: "anvil",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [anvil.url] } },
  });
  const account = privateKeyToAccount(key as `0x${string}`);
  const client = createWalletClient({
    account,
    chain,
    transport: http(anvil.url),
    pollingInterval: 20,
  }).extend(publicActions);
  // The library's types ask for less than the client has, in other words.
  const signer = toFacilitatorEvmSigner({ ...client, address: account.address } as never);
  const facilitator = new x402Facilitator()
    .register(`eip155:${anvil.chainId}`, new ExactEvmScheme(signer))
    .registerV1("base" as never, new ExactEvmSchemeV1(signer));
  const asked: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      asked.push(pathname);
      if (pathname !== "/settle") return Response.json({ error: "unknown" }, { status: 404 });
      try {
        const { paymentPayload, paymentRequirements } = await request.json();
        return Response.json(await facilitator.settle(paymentPayload, paymentRequirements));
      } catch (error) {
        // As a server of its own would respond; here it would be a failure of the test, whichever client waits for it.
        return Response.json({ error: String(error) }, { status: 500 });
      }
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, asked, close: () => server.stop(true) };
}
