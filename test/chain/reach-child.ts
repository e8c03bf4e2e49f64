/**
 * A process that trusts a certificate of its own (`NODE_EXTRA_CA_CERTS`) and reaches a server by names: what
 * each call came to.
 * @module
 */
import { openNode } from "../../src/chain/node.ts";
import { createReach } from "../../src/chain/reach.ts";

const [cert = "", key = ""] = process.argv.slice(2);
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  tls: { cert: Bun.file(cert), key: Bun.file(key) },
  fetch: ({ headers }) => new Response(headers.get("host")?.startsWith("localhost:") ? "7" : "8"),
});
const port = server.port ?? 0;
const reach = createReach({ ports: [port], allowsPrivate: true, resolve: async () => ["127.0.0.1"] });
const said: unknown[] = [];
for (const name of ["localhost", "peer.example", "localhost"]) {
  const node = openNode(`https://${name}:${port}`, undefined, { reach });
  const response = await node.height(new AbortController().signal);
  said.push(response.kind === "ok" ? response.value : response.kind === "fault" ? response.reason : response.kind);
  node.close();
}
console.log(JSON.stringify(said));
await server.stop(true);
