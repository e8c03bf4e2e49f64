/**
 * Letting a wallet see what is its own: by a signature that was never used before, or by a token that a signature got.
 * Source: docs/reference/payment.md#signed-requests; docs/reference/payment.md#tokens-of-a-session.
 * @module
 */
import { Failure } from "../../failures.ts";
import type { Clock } from "../../lib/clock.ts";
import type { LedgerDatabase } from "../../store/ledger/ledger-database.ts";
import type { UserAddress } from "../addresses.ts";
import { readBalance } from "../credits/balances.ts";
import type { WalletTokens } from "./json-web-token.ts";
import { claimNonce, claimStrangersNonce } from "./nonces.ts";
import { isSigned, readSigner, type SignedRequest } from "./signed-request.ts";

/** A wallet that may see what is its own. */
export type AdmittedWallet = Readonly<{
  address: UserAddress;
  /** Whether credits were ever there. */
  hasAccount: boolean;
  /** A token was sent; the response has no new one. */
  by: "signature" | "token";
}>;

/** Tells wallets from those who only say that they are. */
export type WalletAccess = Readonly<{
  /**
   * Who asks for what is the wallet's own. A signature's nonce is used up when this resolves.
   *
   * @returns `undefined` when neither a signature nor a token was shown. With both, the signature decides.
   * @throws Failure `invalid_signature` when what was shown is wrong or was used, `too_many_requests`.
   */
  admit: (request: SignedRequest) => Promise<AdmittedWallet | undefined>;
  /** A token for a wallet that has signed. */
  issue: (address: UserAddress) => string;
}>;

export type WalletAccessOptions = Readonly<{ database: LedgerDatabase; tokens: WalletTokens; clock: Clock }>;

const bearerPattern = /^Bearer +(\S+)$/i;
const bearerWord = /^Bearer(?: |$)/i;

/** Creates the access to the accounts of a ledger. */
export function createWalletAccess({ database, tokens, clock }: WalletAccessOptions): WalletAccess {
  const hasAccount = async (address: UserAddress): Promise<boolean> => {
    const now = clock();
    return (await database.read((tx) => readBalance(tx, address, now))) !== undefined;
  };

  async function bySignature(request: SignedRequest): Promise<AdmittedWallet> {
    const signer = readSigner(request);
    const { address } = signer;
    const now = clock();
    const isKnown = await database.write(async (tx) => {
      const balance = await readBalance(tx, address, now);
      await (balance === undefined ? claimStrangersNonce(tx, signer) : claimNonce(tx, signer, now));
      return balance !== undefined;
    });
    return { address, hasAccount: isKnown, by: "signature" };
  }

  async function byToken(authorization: string): Promise<AdmittedWallet> {
    const token = bearerPattern.exec(authorization)?.[1];
    const address = token === undefined ? undefined : tokens.read(token);
    if (address === undefined) throw new Failure("invalid_signature", { reason: "the token is not valid" });
    return { address, hasAccount: await hasAccount(address), by: "token" };
  }

  return {
    admit: async (request) => {
      if (isSigned(request.headers)) return await bySignature(request);
      const authorization = request.headers.get("authorization") ?? "";
      // Other schemes are a proxy's, or a browser's for its own.
      return bearerWord.test(authorization) ? await byToken(authorization) : undefined;
    },
    issue: tokens.issue,
  };
}
