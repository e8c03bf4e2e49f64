/**
 * The commands of the README's "Upload and pay", as written.
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { dirname } from "node:path";
import { removeFolder } from "../../src/lib/remove-folder.ts";
import { programPorts, type RunningProgram, startDev } from "../support/program.ts";
import { complaintsIn } from "./command.ts";
import { readerFolder, readmeBlocks } from "./readme-section.ts";

let program: RunningProgram;
let ports: Record<string, string>;
let folder: string;

beforeAll(async () => {
  ports = programPorts();
  program = await startDev({ ports });
  folder = readerFolder(program.folder);
}, 120_000);
afterAll(async () => {
  await program?.remove();
  removeFolder(folder);
});

const [commands = ""] = readmeBlocks("Upload and pay");
const [first = "", ...lines] = commands.trim().split("\n");

/** The command for `cairn`, with this runtime in place of the one that npx would fetch. */
const definition = first.replace("npx --yes bun@1.4.5", "bun").replace(/ +#.*$/, "");

/** Runs a line in a shell; calls back with the output so far. */
async function type(line: string, onText: (text: string) => void): Promise<string> {
  const { PATH = "" } = process.env;
  const child = Bun.spawn(["sh", "-c", `${definition}\n${line}`], {
    cwd: folder,
    env: { ...process.env, ...ports, PATH: `${dirname(process.execPath)}:${PATH}` },
    stdout: "pipe",
    stderr: "pipe",
  });
  let out = "";
  for await (const piece of child.stdout) {
    out += new TextDecoder().decode(piece);
    onText(out);
  }
  const complaints = complaintsIn(await new Response(child.stderr).text());
  expect([line, await child.exited, complaints]).toEqual([line, 0, ""]);
  return out;
}

test("every line works", async () => {
  expect([definition, lines.length]).toEqual([`cairn() { bun src/main.ts "$@"; }`, 4]);
  const printed: string[] = [];
  let payment: Promise<unknown> | undefined;
  const pay = (text: string) => {
    const url = /pay here\s+(\S+)\n/.exec(text)?.[1];
    if (url === undefined || payment !== undefined) return;
    const body = new URLSearchParams({ cardNumber: "4242 4242 4242 4242" });
    payment = fetch(url, { method: "POST", body, redirect: "manual" });
  };
  for (const line of lines) printed.push(await type(line, pay));
  await payment;
  const [, uploaded = "", bought = "", balance = ""] = printed;
  const url = /open\s+(\S+)/.exec(uploaded)?.[1] ?? "";
  expect(await (await fetch(url)).text()).toBe("<h1>Hello</h1>\n");
  expect(bought).toContain("credited  1,094,285,714,286 winc; the balance is 101,094,285,714,286 winc now");
  expect(balance).toContain("101,094,285,714,286 winc");
}, 120_000);
