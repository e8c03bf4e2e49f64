/**
 * Starting processes that take data items (`upload-child.ts`), and ending them.
 * @module
 */
import { resolve } from "node:path";

/** What a process is started with. */
export type ChildOptions = Readonly<{
  /** Of the ledger (test/support/ledger-place.ts). */
  place: string;
  /** Of uploads. */
  folder: string;
  keyFile: string;
  threads?: number;
  itemBytesMax?: number;
  freeBytesMin?: number;
}>;

/** A process that takes items. */
export type UploadProcess = Readonly<{
  url: string;
  pid: number;
  /** Ends it as SIGKILL does. */
  kill: () => Promise<void>;
  /** Resolves when it has ended. */
  exited: Promise<number>;
}>;

/** Starts a process and waits until it listens. @param before - Words before the command: another program to run it. */
export async function startUploads(options: ChildOptions, before: readonly string[] = []): Promise<UploadProcess> {
  const child = Bun.spawn(
    [...before, process.execPath, resolve(import.meta.dir, "upload-child.ts"), JSON.stringify(options)],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  return {
    url: await urlFrom(child.stdout),
    pid: child.pid,
    exited: child.exited,
    kill: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

async function urlFrom(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the process ended before it listened: ${text}`);
    text += decoder.decode(value, { stream: true });
    const url = /^open (\S+)\n/m.exec(text)?.[1];
    if (url !== undefined) return url;
  }
}

/** Sends an item. Rejects when the process is gone before its response is. */
export async function sendItem(
  url: string,
  bytes: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>>,
  headers: HeadersInit = {},
): Promise<Readonly<{ status: number; text: string; retryAfter: string | null }>> {
  const response = await fetch(`${url}/tx`, { method: "POST", body: bytes, headers });
  return {
    status: response.status,
    text: await response.text(),
    retryAfter: response.headers.get("retry-after"),
  };
}
