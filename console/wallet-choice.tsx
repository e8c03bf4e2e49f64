/**
 * The choice between the wallet of the browser and the test wallet of `cairn dev`.
 * @module
 */
import { type ReactNode, useState } from "react";
import { faultText } from "./route-client.ts";
import { useReading } from "./use-reading.ts";
import { hasInjectedWallet } from "./wallets.ts";

export type WalletChoiceProps<Wallet> = Readonly<{
  heading: string;
  /** Must be the same function while nothing changes. */
  findTest: (signal: AbortSignal) => Promise<Wallet | undefined>;
  connect: () => Promise<Wallet>;
  onWallet: (wallet: Wallet) => void;
  /** What a user without a wallet can do instead. */
  otherwise: ReactNode;
}>;

export function WalletChoice<Wallet>({ heading, findTest, connect, onWallet, otherwise }: WalletChoiceProps<Wallet>) {
  const [fault, setFault] = useState("");
  const { value: testWallet, error } = useReading(findTest);
  const choose = () => {
    setFault("");
    connect().then(onWallet, (reason) => setFault(`The wallet was not connected: ${faultText(reason)}`));
  };
  return (
    <section aria-label="Wallet">
      <h2>{heading}</h2>
      <div className="buttons">
        {testWallet !== undefined && (
          <button type="button" className="strong" onClick={() => onWallet(testWallet)}>
            Test wallet
          </button>
        )}
        {hasInjectedWallet() && (
          <button type="button" className={testWallet === undefined ? "strong" : ""} onClick={choose}>
            Browser wallet
          </button>
        )}
      </div>
      {!hasInjectedWallet() && testWallet === undefined && (
        <p>This browser has no Arweave wallet. Install one as an extension and open this page again, or {otherwise}.</p>
      )}
      <p className="fault" role="alert">
        {fault || error?.message}
      </p>
    </section>
  );
}
