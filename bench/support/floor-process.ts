/**
 * A floor of the runtime: a bare server with the headers of a response, in a process of its own on one core.
 * @module
 */
import { pinned } from "./processor-time.ts";

/** Headers that the runtime sets, or that only some responses have. */
const ownHeaders: readonly string[] = ["content-length", "date", "x-request-id"];

/**
 * @param program - File of the server. It gets its input and the headers as arguments, and prints its port.
 * @param like - The response whose headers it sends.
 */
export async function startFloor(program: string, input: string, like: Readonly<{ port: number; path: string }>) {
  const headers = await headersOf(`http://127.0.0.1:${like.port}${like.path}`);
  const child = Bun.spawn([...pinned(0), process.execPath, program, input, headers], { stdout: "pipe" });
  const { value } = await child.stdout.getReader().read();
  const stop = async () => {
    child.kill();
    await child.exited;
  };
  return { port: Number(Buffer.from(value ?? []).toString()), pid: child.pid, stop };
}

async function headersOf(url: string): Promise<string> {
  const response = await fetch(url);
  await response.arrayBuffer();
  return JSON.stringify(Object.fromEntries([...response.headers].filter(([name]) => !ownHeaders.includes(name))));
}
