/**
 * The files of the API reference's page: of swagger-ui, and the few lines that start it.
 *
 * build.ts embeds what `readApiDocs` gives, under the names of `apiDocsFiles`.
 * @module
 */
import { promisify } from "node:util";
import { nodeZlib } from "../../lib/late-modules.ts";
import type { AssetFiles } from "../page-assets.ts";

/** Names of the files as they are embedded: compressed with gzip. */
export const apiDocsFiles = ["swagger-ui.js.gz", "swagger-ui.css.gz", "swagger-start.js.gz"] as const;

/** Name of one file. */
export type ApiDocsFile = (typeof apiDocsFiles)[number];

/** Dark where the system is. Its own validator is a service elsewhere: nothing is requested but the document. */
const start = `const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#page",
  deepLinking: true,
  docExpansion: "list",
  validatorUrl: null,
  queryConfigEnabled: false,
});
`;

/** Off the main thread: the script has more than 1 MiB. */
const compress = (bytes: string | ArrayBuffer) => promisify(nodeZlib().gzip)(bytes);

/** Reads the files from the package, and compresses them. Throws when the package is not installed. */
export async function readApiDocs(): Promise<AssetFiles<ApiDocsFile>> {
  const fileOf = (name: string) => Bun.file(Bun.resolveSync(`swagger-ui-dist/${name}`, import.meta.dir));
  const compressed = async (bytes: string | ArrayBuffer) => new Uint8Array(await compress(bytes));
  return {
    "swagger-ui.js.gz": await compressed(await fileOf("swagger-ui-bundle.js").arrayBuffer()),
    "swagger-ui.css.gz": await compressed(await fileOf("swagger-ui.css").arrayBuffer()),
    "swagger-start.js.gz": await compressed(start),
  };
}
