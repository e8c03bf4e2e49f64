/**
 * A small upload service for the tests of the command: it implements the protocol, records requests, and fails on
 * demand.
 * @module
 */
import { generateKeyPairSync, sign } from "node:crypto";
import { checkItem } from "../../src/arweave/data-item.ts";
import { readId } from "../../src/arweave/id.ts";
import { receiptMessage } from "../../src/arweave/receipt.ts";

/** A request that it was sent. */
export type Asked = Readonly<{ method: string; path: string; size: number }>;

/** A response in the place of the usual one, or nothing. */
export type Fault = (asked: Asked, times: number) => Response | undefined;

/** What it has. */
export type FakeUploadService = Readonly<{
  url: string;
  asked: Asked[];
  /** Items by id, whole. */
  items: Map<string, Uint8Array>;
  /** Parts by the id of their upload. */
  uploads: Map<string, Map<number, Uint8Array>>;
  fail: (fault: Fault) => void;
  /** What an upload's status is when all is put together. */
  endAs: (status: Readonly<Record<string, unknown>> | undefined) => void;
  /** Whether receipts are given again, which some services do. */
  giveAgain: () => void;
  /** The price of every upload, winc; `undefined` as at a service without prices. */
  price: (winc: bigint | undefined) => void;
  forget: () => void;
  close: () => Promise<void>;
}>;

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const modulus = String(publicKey.export({ format: "jwk" }).n);

/** A receipt, signed without the program's own signing. */
export function fakeReceipt(text: string, changes: Readonly<Record<string, unknown>> = {}) {
  const id = readId(text);
  if (id === undefined) throw new Error(`${text} is not an id`);
  const terms = { id, timestamp: 1_700_000_000_000, deadlineHeight: 1_200 };
  const options = { key: privateKey, padding: 6, saltLength: 0 };
  const signature = sign("sha256", receiptMessage(terms), options).toString("base64url");
  return { ...terms, winc: "1000", version: "0.2.0", public: modulus, signature, dataCaches: [], ...changes };
}

/** Opens one on a free port. */
export function openFakeUploadService(): FakeUploadService {
  const asked: Asked[] = [];
  const items = new Map<string, Uint8Array>();
  const uploads = new Map<string, Map<number, Uint8Array>>();
  let fault: Fault = () => undefined;
  let givesAgain = false;
  let price: bigint | undefined;
  let ending: Readonly<Record<string, unknown>> | undefined;
  /** How the last upload that was put together ended, when badly. */
  let ended: unknown;

  function take(bytes: Uint8Array): Response {
    const checked = checkItem(bytes, "strict");
    if (checked.kind === "invalid") return Response.json(`Invalid Data Item! ${checked.reason}`, { status: 400 });
    items.set(checked.header.id, bytes);
    return Response.json(fakeReceipt(checked.header.id));
  }

  function wholeOf(upload: string): Uint8Array {
    const parts = [...(uploads.get(upload) ?? [])].sort(([left], [right]) => left - right);
    return Buffer.concat(parts.map(([, bytes]) => bytes));
  }

  function chunks(request: Request, [, , upload = "", place = ""]: string[], body: Uint8Array): Response {
    if (upload === "-1") {
      const id = `upload-${uploads.size + 1}`;
      uploads.set(id, new Map());
      const chunkSize = Number(new URL(request.url).searchParams.get("chunkSize"));
      return Response.json({ id, min: 5_242_880, max: 524_288_000, chunkSize });
    }
    const parts = uploads.get(upload);
    if (parts === undefined) return Response.json("Multi-part upload not found!", { status: 404 });
    if (place === "finalize") return new Response(null, { status: 202 });
    if (place === "status") {
      ended = ending?.["status"];
      if (ending !== undefined) return Response.json(ending);
      const taken = take(wholeOf(upload));
      if (taken.status !== 200) return Response.json({ status: "INVALID" });
      const [id = ""] = [...items.keys()].slice(-1);
      return Response.json({ status: "FINALIZED", receipt: fakeReceipt(id) });
    }
    if (place === "-1") {
      const failed = ended === undefined ? {} : { failedReason: ended };
      const chunks = [...parts].map(([offset, { length }]) => [offset, length]).sort();
      return Response.json({ id: upload, min: 5_242_880, max: 524_288_000, size: 0, chunks, ...failed });
    }
    parts.set(Number(place), body);
    return new Response(null);
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    maxRequestBodySize: 2 ** 30,
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      const body = await request.bytes();
      const record = { method: request.method, path: pathname, size: body.length };
      asked.push(record);
      const times = asked.filter(({ method, path }) => method === record.method && path === pathname).length;
      const failed = fault(record, times);
      if (failed !== undefined) return failed;
      const [, first, second = "", third] = pathname.split("/");
      if (first === "info") return Response.json({ gateway: "http://gateway.test", uploadLimitBytes: 2 ** 30 });
      if (first === "price" && price !== undefined) return new Response(`${price}`);
      if (first === "tx" && third === "status") {
        return items.has(second)
          ? Response.json({ status: "CONFIRMED", info: "new", winc: "1000" })
          : Response.json("TX doesn't exist", { status: 404 });
      }
      if (first === "tx" && third === "receipt") {
        return givesAgain && items.has(second)
          ? Response.json(fakeReceipt(second))
          : Response.json("Not Found", { status: 404 });
      }
      if (first === "tx") return take(body);
      if (first === "chunks") return chunks(request, pathname.split("/").slice(1), body);
      return Response.json("Not Found", { status: 404 });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    asked,
    items,
    uploads,
    fail: (next) => {
      fault = next;
    },
    endAs: (status) => {
      ending = status;
    },
    giveAgain: () => {
      givesAgain = true;
    },
    price: (winc) => {
      price = winc;
    },
    forget: () => {
      givesAgain = false;
      asked.length = 0;
      items.clear();
      uploads.clear();
      fault = () => undefined;
      ending = undefined;
      ended = undefined;
    },
    close: () => server.stop(true),
  };
}
