/**
 * Attackers of attacks.ts: each sends an expensive GraphQL query after the response to its last query, until the stop
 * signal. Then they print the count, and end when all responses have arrived.
 * @module
 */
import { attackSet } from "../../test/http/graphql-attack-set.ts";

const attackers = 4;

/** The target, and the first query of the set. */
const [url = "", first = "0"] = process.argv.slice(2);
/** Tags of the index of graphql.ts. */
const tags = [
  { name: "App-Name", value: "Bench" },
  { name: "Content-Type", value: "image/png" },
  { name: "Content-Type", value: "application/json" },
  { name: "Entity-Type", value: "file" },
  { name: "Entity-Type", value: "folder" },
];
const bodies = attackSet(tags, { name: "App-Name", value: "Bench" }).map(([, body]) => body);
let sent = 0;
let stopped = false;

process.on("SIGTERM", () => {
  process.stdout.write(`${sent}\n`);
  stopped = true;
});
process.stdout.write("begun\n");
await Promise.all(Array.from({ length: attackers }, attack));
process.exit(0);

async function attack(): Promise<void> {
  const headers = { "Content-Type": "application/json" };
  while (!stopped) {
    const body = bodies[(Number(first) + sent) % bodies.length] ?? "";
    sent += 1;
    await (await fetch(`${url}/graphql`, { method: "POST", body, headers })).bytes();
  }
}
