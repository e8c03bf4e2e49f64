/**
 * The published SDK paying on Ethereum, in ether and in dollars, and on Solana, against the payment service.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openSolanaNode, type SolanaNode, solanaAddress } from "../payment/tokens/solana-node.ts";
import { clientLibraries, describeWith } from "../support/helpers.ts";
import { eventually, type RunningProgram, startDev } from "../support/program.ts";
import { type Anvil, anvilAccounts, anvilNeed, callOf, openAnvil, selectors } from "./anvil.ts";
import { openAnonymousTurbo, openTurbo, type TurboKey, turboKeys } from "./turbo.ts";

/** Where the SDK looks for dollars on the main network: no setting of it names another place. */
const dollarAddress = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48";

const [payer, merchant] = anvilAccounts;
const ether: TurboKey = { token: "ethereum", privateKey: payer.key, address: payer.address };
const confirmations = 5;

const need = { there: clientLibraries.there && anvilNeed.there, what: `${clientLibraries.what} and anvil` };

/** Slots after which a transaction of Solana is final. */
const finality = 32;
const solanaMerchant = solanaAddress(1);

describeWith(need, "turbo-sdk on other chains", () => {
  let chain: Anvil;
  let solana: SolanaNode;
  let program: RunningProgram;

  beforeAll(async () => {
    chain = await openAnvil({ chainId: 1 });
    const deployed = await chain.deployDollar();
    await chain.rpc("anvil_setCode", dollarAddress, await chain.rpc("eth_getCode", deployed, "latest"));
    const mint = callOf(selectors.mint, payer.address, 100_000_000n);
    await chain.send({ from: payer.address, to: dollarAddress, data: mint });
    solana = openSolanaNode();
    program = await startDev({
      environment: {
        ETHEREUM_RPC_URL: chain.url,
        PAYMENT_ADDRESS_ETHEREUM: merchant.address,
        SOLANA_RPC_URL: solana.url,
        SOLANA_GENESIS_HASH: solana.genesisHash,
        PAYMENT_ADDRESS_SOLANA: solanaMerchant,
      },
    });
  }, 120_000);

  afterAll(async () => {
    await program?.remove();
    await chain?.close();
    await solana?.close();
  });

  const open = async (key: TurboKey) => {
    const { EthereumToken, TurboFactory } = await import("@ardrive/turbo-sdk");
    const pollingOptions = { initialBackoffMs: 50, pollingIntervalMs: 100, maxAttempts: 100 };
    const quick = { tokenTools: new EthereumToken({ gatewayUrl: chain.url, pollingOptions }) };
    return TurboFactory.authenticated({
      privateKey: key.privateKey as string,
      token: key.token as "ethereum",
      gatewayUrl: chain.url,
      paymentServiceConfig: { url: program.line.payment },
      ...(key.token === "ethereum" ? quick : {}),
    });
  };

  test("getTurboCryptoWallets names the addresses", async () => {
    const wallets = await (await openAnonymousTurbo(program)).getTurboCryptoWallets();
    expect(wallets).toMatchObject({
      ethereum: merchant.address,
      usdc: merchant.address,
      solana: solanaMerchant,
    });
  });

  test("topUpWithTokens in ether is pending, then credited to the sender when it is deep enough", async () => {
    const turbo = await open(ether);
    const { ETHToTokenAmount } = await import("@ardrive/turbo-sdk");
    // A quarter of 2,800 dollars at seven dollars an AR, less the fee: 76.6 AR.
    const winc = "76600000000000";
    const sent = await turbo.topUpWithTokens({ tokenAmount: ETHToTokenAmount(0.25) });
    expect(sent).toMatchObject({
      status: "pending",
      owner: payer.address,
      recipient: payer.address,
      quantity: "250000000000000000",
      target: merchant.address,
      token: "ethereum",
      winc,
    });
    expect((await turbo.getBalance()).winc).toBe("0");
    await chain.mine(confirmations);
    await eventually(
      () => turbo.getBalance(),
      (balance) => balance.winc === winc,
    );
    // As a careless client writes it: it is the same payment, and credited already.
    for (const txId of [sent.id, `0x${sent.id.slice(2).toUpperCase()}`])
      expect(await turbo.submitFundTransaction({ txId })).toMatchObject({ id: sent.id, status: "confirmed" });
    expect((await turbo.getBalance()).winc).toBe(winc);
    const { payments } = await turbo.getPaymentHistory({ limit: 1 });
    expect(payments).toMatchObject([
      {
        type: "crypto",
        tokenType: "ethereum",
        tokenQuantity: "250000000000000000",
        senderAddress: payer.address,
      },
    ]);
  });

  test("topUpWithTokens in ether is credited to another chain's key where the sender says so", async () => {
    const other = solanaKey();
    const turbo = await open(ether);
    const sent = await turbo.topUpWithTokens({
      tokenAmount: 10 ** 16,
      turboCreditDestinationAddress: other.address,
    });
    expect(sent).toMatchObject({ owner: payer.address, recipient: other.address });
    await chain.mine(confirmations);
    await eventually(
      () => turbo.getBalance(other.address),
      ({ winc }) => winc === "3064000000000",
    );
  });

  test("topUpWithTokens in dollars is credited to the sender, and to whom it names", async () => {
    const dollars = await open({ ...ether, token: "usdc" });
    const before = BigInt((await dollars.getBalance()).winc);
    // The SDK waits 25 seconds before it looks for such a payment, so both are sent at once.
    const named = { turboCreditDestinationAddress: anvilAccounts[2].address };
    const own = dollars.topUpWithTokens({ tokenAmount: 7_000_000 });
    await eventually(
      () => chain.rpc<string>("eth_getTransactionCount", payer.address, "pending"),
      (count) => Number(count) > 4,
    );
    const others = dollars.topUpWithTokens({ tokenAmount: 14_000_000, ...named });
    expect(await own).toMatchObject({ token: "usdc", winc: "766000000000", owner: payer.address });
    expect(await others).toMatchObject({
      winc: "1532000000000",
      recipient: named.turboCreditDestinationAddress,
    });
    await chain.mine(confirmations);
    await eventually(
      () => dollars.getBalance(),
      ({ winc }) => BigInt(winc) === before + 766_000_000_000n,
    );
    await eventually(
      () => dollars.getBalance(named.turboCreditDestinationAddress),
      ({ winc }) => winc === "1532000000000",
    );
    const { payments } = await dollars.getPaymentHistory({ limit: 1 });
    expect(payments).toMatchObject([{ tokenType: "usdc", tokenQuantity: "7000000", usdEquivalent: "7" }]);
  }, 90_000);

  test("submitFundTransaction of a payment in SOL is pending, then credited to the sender when it is final", async () => {
    const key = solanaKey();
    const turbo = await openTurbo(program, key);
    const before = BigInt((await turbo.getBalance()).winc);
    const lamports = 500_000_000n;
    const txId = solana.send({ moves: [{ from: key.address, to: solanaMerchant, amount: lamports }] });
    // Half of 140 dollars at seven dollars an AR, less the fee.
    const winc = "7660000000000";
    const seen = await turbo.submitFundTransaction({ txId });
    expect(seen).toMatchObject({ id: txId, status: "pending", owner: key.address, winc, token: "solana" });
    solana.advance(finality);
    await eventually(
      () => turbo.getBalance(),
      (balance) => BigInt(balance.winc) === before + BigInt(winc),
    );
    expect(await turbo.submitFundTransaction({ txId })).toMatchObject({ status: "confirmed", winc });
    const { payments } = await turbo.getPaymentHistory({ limit: 1 });
    expect(payments).toMatchObject([
      { tokenType: "solana", transactionId: txId, senderAddress: key.address },
    ]);
  });

  function solanaKey(): TurboKey {
    return turboKeys(program).find(({ token }) => token === "solana") ?? ether;
  }
});
