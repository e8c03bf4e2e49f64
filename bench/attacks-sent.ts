/**
 * Attackers of bench/attacks.ts: each sends the next GraphQL query made to hurt when the last was answered, until they
 * are told to stop; then they say how many there were.
 * @module
 */
import { attackSet } from "../test/http/graphql-attack-set.ts";

const attackers = 4;

const [url = ""] = process.argv.slice(2);
/** Tags of the index of bench/graphql.ts. */
const tags = [
  { name: "App-Name", value: "Bench" },
  { name: "Content-Type", value: "image/png" },
  { name: "Content-Type", value: "application/json" },
  { name: "Entity-Type", value: "file" },
  { name: "Entity-Type", value: "folder" },
];
const bodies = attackSet(tags, { name: "App-Name", value: "Bench" }).map(([, body]) => body);
let sent = 0;

process.on("SIGTERM", () => {
  process.stdout.write(`${sent}\n`);
  process.exit(0);
});
process.stdout.write("begun\n");
await Promise.all(Array.from({ length: attackers }, attack));

async function attack(): Promise<never> {
  const headers = { "Content-Type": "application/json" };
  for (;;) {
    const body = bodies[sent % bodies.length] ?? "";
    sent += 1;
    await (await fetch(`${url}/graphql`, { method: "POST", body, headers })).bytes();
  }
}
