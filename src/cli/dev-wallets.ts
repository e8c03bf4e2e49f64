/**
 * The wallets of a development chain as their users see them: money on the chain, and credits to upload with.
 * @module
 */

import { systemRandom } from "../app/random.ts";
import type { Devnet } from "../dev/devnet/devnet.ts";
import type { TestWallet } from "../dev/devnet/wallets.ts";
import { systemClock } from "../lib/clock.ts";
import type { UserAddress } from "../payment/addresses.ts";
import { giveStartingCredits } from "../payment/credits/starting-credits.ts";
import type { LedgerDatabase } from "../store/ledger/ledger-database.ts";
import { balanceOf, createTransferIds, user } from "../store/ledger/transfers.ts";
import { accountOfKey } from "./wallet-file.ts";

/** A wallet with what it has. */
export type FundedWallet = TestWallet &
  Readonly<{
    /** Winston on the chain. */
    balance: bigint;
    /** Whom its uploads are charged to; an ECDSA key uploads as Ethereum's do. Undefined: it cannot upload. */
    account: UserAddress | undefined;
    /** Winc of that account. */
    credits: bigint;
  }>;

/** What each wallet begins with, winc: about a hundred GiB of storage where the development chain's fees begin. */
const wincAtStart = 100n * 10n ** 12n;

/** Gives each wallet the credits that it begins with, if it never had them, and tells what all of them have. */
export async function fundDevWallets(
  { wallets, account }: Pick<Devnet, "wallets" | "account">,
  ledger: LedgerDatabase,
): Promise<FundedWallet[]> {
  const accounts = wallets.map(({ jwk }) => accountOfKey(jwk));
  const parts = { ledger, clock: systemClock, makeId: createTransferIds(systemClock, systemRandom) };
  const known = accounts.filter((address) => address !== undefined);
  await giveStartingCredits(parts, known, wincAtStart);
  return await ledger.read(async (tx) => {
    const funded: FundedWallet[] = [];
    for (const [index, wallet] of wallets.entries()) {
      const address = accounts[index];
      const credits = address === undefined ? 0n : await balanceOf(tx, user(address));
      const balance = account(wallet.address)?.balance ?? 0n;
      funded.push({ ...wallet, balance, account: address, credits });
    }
    return funded;
  });
}
