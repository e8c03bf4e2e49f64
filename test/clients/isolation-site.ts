/**
 * What the isolation test puts on a chain: a page with secrets, a page that is after them, and a single-page app as its
 * makers build it, which knows nothing of gateways.
 * @module
 */
import { writeBundle } from "../../src/arweave/bundle.ts";
import { createDataItem } from "../../src/arweave/data-item.ts";
import { type Id, idOfSignature } from "../../src/arweave/id.ts";
import type { Signer } from "../../src/arweave/signers/scheme.ts";
import { readWallet } from "../../src/arweave/wallet.ts";
import type { Node } from "../../src/chain/node.ts";
import { postData } from "../../src/dev/sample/sample-site.ts";
import type { JsonObject } from "../../src/lib/json.ts";
import { signers } from "../support/signers.ts";

/** The ids of what was planted. */
export type IsolationSite = Readonly<{
  /** Keeps a secret in every storage a page has. */
  keeper: Id;
  /** Does nothing by itself. */
  thief: Id;
  /** A script that would be a service worker, which responds to everything with "taken over". */
  worker: Id;
  /** A manifest. */
  app: Id;
}>;

const secretPage = `<!doctype html><title>keeper</title><script>
localStorage.setItem("secret", "s3cret");
document.cookie = "secret=s3cret";
const opening = indexedDB.open("secrets", 1);
opening.onupgradeneeded = () => opening.result.createObjectStore("secrets").put("s3cret", "secret");
opening.onsuccess = async () => {
  await (await caches.open("secrets")).put("/secret", new Response("s3cret")).catch(() => undefined);
  document.title = "stored";
};
</script>`;

const workerScript = `self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => event.respondWith(new Response("taken over")));`;

/** Addresses as bundlers write them: relative, absolute from the root, and by the module's own address. */
const appFiles: Readonly<Record<string, readonly [type: string, body: string]>> = {
  "index.html": [
    "text/html",
    `<!doctype html><html><head><title>app</title><link rel="stylesheet" href="./assets/app.css"></head>
<body><div id="root"></div><script type="module" src="./assets/app.js"></script></body></html>`,
  ],
  "assets/app.css": ["text/css", "#root { color: rgb(1, 2, 3); }"],
  "assets/app.js": [
    "text/javascript",
    `import { double } from "./double.js";
const visits = Number(localStorage.getItem("visits") ?? 0) + 1;
localStorage.setItem("visits", String(visits));
const request = indexedDB.open("app", 1);
request.onupgradeneeded = () => request.result.createObjectStore("notes", { autoIncrement: true });
const db = await new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});
const notes = db.transaction("notes", "readwrite").objectStore("notes");
notes.add("visit " + visits);
const count = await new Promise((resolve) => {
  const counting = notes.count();
  counting.onsuccess = () => resolve(counting.result);
});
const ask = (worker) =>
  new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error("worker: " + message));
    worker.postMessage(21);
  });
const modular = await ask(new Worker(new URL("./worker.js", import.meta.url), { type: "module" }));
const blob = new Blob(["onmessage = ({ data }) => postMessage(data + 1)"], { type: "text/javascript" });
const inline = await ask(new Worker(URL.createObjectURL(blob)));
const data = await (await fetch(new URL("../data.json", import.meta.url))).json();
history.pushState({}, "", "?page=two");
const root = document.getElementById("root");
root.textContent = JSON.stringify({ visits, count, modular, inline, data, double: double(4) });
root.dataset.ready = "yes";`,
  ],
  "assets/double.js": ["text/javascript", "export const double = (value) => value * 2;"],
  "assets/worker.js": [
    "text/javascript",
    `import { double } from "./double.js";
onmessage = ({ data }) => postMessage(double(data));`,
  ],
  "data.json": ["application/json", '{"from":"the app"}'],
};

type Item = Readonly<{ id: Id; bytes: Uint8Array }>;

/** Puts it on the chain of a node. @param key - JWK of a funded wallet. */
export async function plantIsolationSite(node: Node, key: JsonObject): Promise<IsolationSite> {
  const signer = signers[1] as Signer;
  const make = (contentType: string, data: string): Item => {
    const bytes = createDataItem({ data, tags: [{ name: "Content-Type", value: contentType }] }, signer);
    return { id: idOfSignature(bytes.subarray(2, 2 + signer.scheme.signatureSize)), bytes };
  };
  const keeper = make("text/html", secretPage);
  const thief = make("text/html", "<!doctype html><title>thief</title>");
  const worker = make("text/javascript", workerScript);
  const files = Object.entries(appFiles).map(([path, [type, body]]) => ({ path, ...make(type, body) }));
  const manifest = {
    manifest: "arweave/paths",
    version: "0.2.0",
    index: { path: "index.html" },
    paths: Object.fromEntries(files.map(({ path, id }) => [path, { id }])),
  };
  const app = make("application/x.arweave-manifest+json", JSON.stringify(manifest));
  const bundle = writeBundle([keeper, thief, worker, ...files, app].map(({ bytes }) => bytes));
  const tags = [
    { name: "Bundle-Format", value: "binary" },
    { name: "Bundle-Version", value: "2.0.0" },
  ];
  await postData(node, readWallet(key), { data: bundle, tags }, AbortSignal.timeout(30_000));
  return { keeper: keeper.id, thief: thief.id, worker: worker.id, app: app.id };
}
