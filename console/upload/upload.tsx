/**
 * The upload page at `/svc/upload`: choose files, see the price and the credits of a wallet, sign, send, and watch the
 * items until they are permanent. Nothing is sent before the user has seen the price.
 * @module
 */
import { StrictMode, useCallback, useEffect, useId, useMemo, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { creditsText } from "../account/amounts.ts";
import { bytesText, numberText, Table, Values } from "../page-parts.tsx";
import { readCredits, routeUrl } from "../route-client.ts";
import { useReading } from "../use-reading.ts";
import { WalletChoice } from "../wallet-choice.tsx";
import { type ChosenFile, filesMax, filesOfDrop, filesOfInput } from "./chosen-files.ts";
import { itemSize } from "./data-item.ts";
import { readLimits, readPrice, readState } from "./upload-client.ts";
import { planOf, runUpload, type UploadDraft, type UploadPlan, type UploadResult } from "./upload-run.ts";
import { connectUploadWallet, findUploadTestWallet, type UploadWallet } from "./upload-wallets.ts";

function UploadPage() {
  const [files, setFiles] = useState<readonly ChosenFile[]>([]);
  const [result, setResult] = useState<UploadResult>();
  const begin = (chosen: readonly ChosenFile[]) => {
    setResult(undefined);
    setFiles(chosen);
  };
  return (
    <>
      <h1>Upload</h1>
      <p>Uploaded data is public and permanent: it cannot be changed or removed.</p>
      <FileChoice onFiles={begin} />
      {files.length > 0 && result === undefined && <Order key={filesKey(files)} files={files} onDone={setResult} />}
      {result !== undefined && <Finished result={result} />}
    </>
  );
}

/** Another choice begins anew. */
function filesKey(files: readonly ChosenFile[]): string {
  return files.map(({ path, file }) => `${path} ${file.size} ${file.lastModified}`).join("\n");
}

function FileChoice({ onFiles }: Readonly<{ onFiles: (files: readonly ChosenFile[]) => void }>) {
  const [isOver, setOver] = useState(false);
  const [fault, setFault] = useState("");
  const [file, folder] = [useId(), useId()];
  const take = (files: readonly ChosenFile[]) => {
    const isTooMuch = files.length > filesMax;
    setFault(isTooMuch ? `More than ${filesMax} files: use the command line, cairn upload.` : "");
    if (!isTooMuch && files.length > 0) onFiles(files);
  };
  return (
    <section
      className={isOver ? "drop over" : "drop"}
      aria-label="Files"
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        filesOfDrop(event.dataTransfer).then(take, (error) => setFault(`The files cannot be read: ${error.message}`));
      }}
    >
      <p>Drop files or a folder here, or choose them:</p>
      <div className="row">
        <label htmlFor={file}>Files</label>
        <input id={file} type="file" multiple onChange={({ target }) => take(filesOfInput(target.files))} />
      </div>
      <div className="row">
        <label htmlFor={folder}>Folder</label>
        <input
          id={folder}
          type="file"
          ref={(input) => input?.setAttribute("webkitdirectory", "")}
          onChange={({ target }) => take(filesOfInput(target.files))}
        />
      </div>
      <p className="fault" role="alert">
        {fault}
      </p>
    </section>
  );
}

type OrderProps = Readonly<{ files: readonly ChosenFile[]; onDone: (result: UploadResult) => void }>;

/** The files, their price, the wallet, and the button that sends them. */
function Order({ files, onDone }: OrderProps) {
  const [wallet, setWallet] = useState<UploadWallet>();
  const plan = useMemo(() => planOf(files), [files]);
  const readCost = useCallback((signal: AbortSignal) => readPlanCost(plan, signal), [plan]);
  const cost = useReading(readCost);
  return (
    <>
      <Values
        values={[
          ["Files", numberText(files.length)],
          ["Size", bytesText(plan.bytes)],
          ["Price", cost.value === undefined ? "…" : priceText(cost.value.winc)],
        ]}
      />
      <p className="fault" role="alert">
        {cost.error?.message ?? cost.value?.fault ?? ""}
      </p>
      <FileTable files={files} />
      {wallet === undefined ? (
        <WalletChoice
          heading="Sign with"
          findTest={findUploadTestWallet}
          connect={connectUploadWallet}
          onWallet={setWallet}
          otherwise={
            <>
              use the command line: <code>cairn upload</code>
            </>
          }
        />
      ) : (
        <Sending
          key={wallet.address}
          wallet={wallet}
          plan={plan}
          winc={cost.value?.fault === undefined ? cost.value?.winc : undefined}
          onDone={onDone}
        />
      )}
    </>
  );
}

type Cost = Readonly<{ winc: bigint; fault: string | undefined }>;

async function readPlanCost({ items }: UploadPlan, signal: AbortSignal): Promise<Cost> {
  const { freeBytesMax, itemBytesMax } = await readLimits(signal);
  const sizes = items.map(({ size, tags }) => itemSize(size, tags));
  const tooLarge = items.find((_, index) => (sizes[index] ?? 0) > Math.min(itemBytesMax, pageBytesMax));
  const charged = sizes.filter((size) => size > freeBytesMax).reduce((sum, size) => sum + size, 0);
  return {
    winc: await readPrice(charged, signal),
    fault: tooLarge && `${tooLarge.path} is too large for this page. Use the command line: cairn upload.`,
  };
}

/** A browser hashes and signs an item in memory. Bytes. */
const pageBytesMax = 512 * 2 ** 20;

/** Most rows of the table of files. */
const rowsMax = 100;

function FileTable({ files }: Readonly<{ files: readonly ChosenFile[] }>) {
  const rest = files.length - rowsMax;
  return (
    <>
      <Table
        name="Chosen files"
        columns={["Path", "Type", "Size"]}
        rows={files
          .slice(0, rowsMax)
          .map(({ path, file }) => [path, path, file.type || "unknown", bytesText(file.size)])}
        empty=""
      />
      {rest > 0 && <p className="empty">{`and ${numberText(rest)} more`}</p>}
    </>
  );
}

const accountUrl = "account#buy";

/** Whether the head of the page links the page of the account. */
function hasAccountPage(): boolean {
  return document.querySelector('nav a[href="account"]') !== null;
}

function BuyCommand() {
  return (
    <>
      Buy some with <code>cairn topup</code>
    </>
  );
}

type SendingProps = Readonly<{
  wallet: UploadWallet;
  plan: UploadPlan;
  /** Undefined while the price is not known. */
  winc: bigint | undefined;
  onDone: (result: UploadResult) => void;
}>;

function Sending({ wallet, plan, winc, onDone }: SendingProps) {
  const [sent, setSent] = useState<number>();
  const [fault, setFault] = useState("");
  const stop = useRef<AbortController>();
  const draft = useRef<Readonly<{ plan: UploadPlan; items: UploadDraft }>>();
  useEffect(() => () => stop.current?.abort(), []);
  const { address } = wallet;
  const credits = useReading(useCallback((signal: AbortSignal) => readCredits(address, signal), [address]));
  const isShort = winc !== undefined && credits.value !== undefined && credits.value < winc;
  const send = () => {
    setFault("");
    setSent(0);
    const own = new AbortController();
    stop.current = own;
    if (draft.current?.plan !== plan) draft.current = { plan, items: new Map() };
    runUpload(plan, wallet, draft.current.items, setSent, own.signal).then(onDone, (error) => {
      setSent(undefined);
      if (!own.signal.aborted) setFault(error instanceof Error ? error.message : String(error));
    });
  };
  return (
    <section aria-label="Payment">
      <Values
        values={[
          [wallet.name, <code key="address">{address}</code>],
          ["Credits", credits.value === undefined ? "…" : creditsText(credits.value)],
        ]}
      />
      {isShort && (
        <p className="fault" role="alert">
          There are not enough credits. {hasAccountPage() ? <a href={accountUrl}>Buy some</a> : <BuyCommand />}, then
          upload again.
        </p>
      )}
      {sent === undefined ? (
        <button type="button" className="strong" disabled={winc === undefined || isShort} onClick={send}>
          {winc === undefined ? "Upload" : `Upload for ${priceText(winc)}`}
        </button>
      ) : (
        <div className="row">
          <progress aria-label="Uploaded" max={plan.bytes} value={sent} />
          <span>{`${bytesText(Math.min(sent, plan.bytes))} of ${bytesText(plan.bytes)}`}</span>
          <button type="button" onClick={() => stop.current?.abort()}>
            Stop
          </button>
        </div>
      )}
      <p className="fault" role="alert">
        {fault}
      </p>
    </section>
  );
}

/** Time between two readings of the state. */
const stateEveryMs = 2_000;

/** The link, the receipts, and how far the last item is: it is in no earlier bundle than the others. */
function Finished({ result }: Readonly<{ result: UploadResult }>) {
  const { id, isFolder, items, receipts } = result;
  const [isEnd, setEnd] = useState(false);
  const read = useCallback((signal: AbortSignal) => readState(id, signal), [id]);
  const state = useReading(read, isEnd ? undefined : stateEveryMs);
  const { status, info, reason } = state.value ?? { status: "", info: "" };
  useEffect(() => setEnd(status === "FINALIZED" || status === "FAILED"), [status]);
  const content = routeUrl(`${id}${isFolder ? "/" : ""}`).href;
  const file = `data:application/json,${encodeURIComponent(JSON.stringify(receipts, undefined, 2))}`;
  return (
    <section aria-label="Result">
      <h2>{items.length === 1 ? "Your file is stored" : `Your ${items.length} files are stored`}</h2>
      <p>
        <a href={content}>{content}</a>
      </p>
      <Values
        values={[
          [
            "State",
            <span key="state" role="status">
              {stateTexts[`${status} ${info}`] ?? "…"}
            </span>,
          ],
        ]}
      />
      {reason !== undefined && <p className="fault">{reason}</p>}
      <p className="buttons">
        <a href={routeUrl(`svc/explorer?id=${id}`).href}>Show in the explorer, with its proof</a>
        <a href={file} download={`receipts-${id.slice(0, 8)}.json`}>
          {receipts.length === 1 ? "Save the receipt" : "Save the receipts"}
        </a>
      </p>
      <Table
        name="Items"
        columns={["Path", "Id"]}
        rows={items.slice(0, rowsMax).map((item) => [item.path, item.path, <code key="id">{item.id}</code>])}
        empty=""
      />
    </section>
  );
}

const stateTexts: Readonly<Record<string, string>> = {
  "CONFIRMED new": "Stored here; it waits for its bundle",
  "CONFIRMED pending": "In a bundle on its way to the chain",
  "FINALIZED permanent": "Permanent",
  "FAILED failed": "Failed",
};

function priceText(winc: bigint): string {
  return winc === 0n ? "free" : `${creditsText(winc)} credits`;
}

const root = document.getElementById("page");
if (root === null) throw new Error("the page has no place for its content");
createRoot(root).render(
  <StrictMode>
    <UploadPage />
  </StrictMode>,
);
