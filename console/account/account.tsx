/**
 * The page of an account at `/svc/account`: its credits and what they store, top-ups by card and in tokens with the
 * price first, gifts, approvals, and the history. A wallet signs in with one signature, which moves nothing.
 * @module
 */
import { StrictMode, useCallback, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { Values } from "../page-parts.tsx";
import { faultText } from "../route-client.ts";
import { useReading } from "../use-reading.ts";
import { WalletChoice } from "../wallet-choice.tsx";
import { type Balance, readBalance, readRate } from "./account-client.ts";
import { History } from "./account-history.tsx";
import {
  type AccountWallet,
  connectAccountWallet,
  findAccountTestWallet,
  type Session,
  signIn,
  storedSession,
  storeSession,
} from "./account-session.ts";
import { creditsText, storedText, wincText } from "./amounts.ts";
import { GiftForm } from "./gift-form.tsx";
import { SharedCredits } from "./shared-credits.tsx";
import { TokenPayment } from "./token-payment.tsx";
import { TopUp } from "./top-up.tsx";

function AccountPage() {
  const [session, setSession] = useState(storedSession);
  const signOut = () => {
    storeSession(undefined);
    setSession(undefined);
  };
  return (
    <>
      <h1>Credits</h1>
      <p>
        Credits pay for uploads. One credit buys the storage that one token of the network buys. Credits do not expire,
        and belong to the address of a wallet.
      </p>
      {session === undefined ? (
        <SignIn onSession={setSession} />
      ) : (
        <Account key={session.address} session={session} onSignOut={signOut} />
      )}
    </>
  );
}

function SignIn({ onSession }: Readonly<{ onSession: (session: Session) => void }>) {
  const [fault, setFault] = useState("");
  const begin = (wallet: AccountWallet) => {
    setFault("");
    signIn(wallet).then(onSession, (error) => setFault(`The wallet was not signed in: ${faultText(error)}`));
  };
  return (
    <>
      <WalletChoice
        heading="Sign in"
        findTest={findAccountTestWallet}
        connect={connectAccountWallet}
        onWallet={begin}
        otherwise={
          <>
            use the command line: <code>cairn balance</code> and <code>cairn topup</code>
          </>
        }
      />
      <p className="empty">
        The wallet signs a short text, once. The signature shows that the account is yours; it pays for nothing.
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
    </>
  );
}

/** Time between two readings of the credits. */
const balanceEveryMs = 5_000;

const parts = [
  ["buy", "Buy"],
  ["tokens", "Tokens"],
  ["gift", "Gift"],
  ["shared", "Shared"],
  ["history", "History"],
] as const;

type Part = (typeof parts)[number][0];

type AccountProps = Readonly<{ session: Session; onSignOut: () => void }>;

function Account({ session, onSignOut }: AccountProps) {
  const { address } = session;
  const part = usePart();
  const { value: rate } = useReading(readRate);
  const readOwn = useCallback((signal: AbortSignal) => readBalance(address, signal), [address]);
  const { value: balance, error, again } = useReading(readOwn, balanceEveryMs);
  return (
    <>
      <section className="who" aria-label="Account">
        <span>{session.name}</span>
        <code>{address}</code>
        <button type="button" onClick={onSignOut}>
          Sign out
        </button>
      </section>
      <Credits balance={balance} rate={rate} />
      <p className="fault" role="alert">
        {error?.message}
      </p>
      <nav className="parts" aria-label="Account">
        {parts.map(([name, text]) => (
          <a key={name} href={`#${name}`} aria-current={name === part ? "page" : undefined}>
            {text}
          </a>
        ))}
      </nav>
      {part === "buy" && <TopUp address={address} rate={rate} />}
      {part === "tokens" && <TokenPayment address={address} token={session.token} rate={rate} />}
      {part === "gift" && <GiftForm address={address} onRedeemed={again} />}
      {part === "shared" && <SharedCredits balance={balance} />}
      {part === "history" && <History token={session.token} winc={balance?.winc} />}
    </>
  );
}

function namedPart(): Part {
  return parts.find(([name]) => `#${name}` === location.hash)?.[0] ?? "buy";
}

/** The part of the page that its address names. */
function usePart(): Part {
  const [part, setPart] = useState<Part>(namedPart);
  useEffect(() => {
    const change = () => setPart(namedPart);
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return part;
}

type CreditsProps = Readonly<{ balance: Balance | undefined; rate: bigint | undefined }>;

function Credits({ balance, rate }: CreditsProps) {
  if (balance === undefined) return <Values values={[["Credits", "…"]]} />;
  const { winc, effectiveWinc } = balance;
  const shared = effectiveWinc - winc;
  return (
    <Values
      values={[
        [
          "Credits",
          <span key="credits" role="status">
            {creditsText(winc)}
            <small>{wincText(winc)}</small>
          </span>,
        ],
        ["Stores", storedText(winc, rate)],
        ...(shared > 0n ? ([["Shared with you", creditsText(shared)]] as const) : []),
      ]}
    />
  );
}

const root = document.getElementById("page");
if (root === null) throw new Error("the page has no place for its content");
createRoot(root).render(
  <StrictMode>
    <AccountPage />
  </StrictMode>,
);
