/**
 * The pages with scripts: the console of the operator at `/svc/console`, beside the admin API that it reads, the
 * explorer at `/svc/explorer`, and the page for uploads at `/svc/upload`; and the module that verifies content, at
 * `/svc/verify.js`. They need no key, and load files of this origin only: embedded in the binary (build.ts), or bundled
 * from a folder of `console`.
 * Source: docs/reference/gateway.md#console; docs/reference/gateway.md#explorer;
 * docs/reference/gateway.md#upload-page; docs/verify-module.md; docs/reference/gateway.md#isolation.
 * @module
 */
import { type AnyElysia, Elysia } from "elysia";
import type { JsonObject } from "../../lib/json.ts";
import {
  type AssetFiles,
  assetResponse,
  bundleModule,
  bundlePage,
  createAssetSource,
  pagePolicy,
} from "../page-assets.ts";
import { pageMark, pageStyle } from "../page-layout.ts";
import { jsonResponse, pageResponse } from "../responses.ts";

type ScriptPage = Readonly<{
  /** Of the route below `/svc`, of the files, and of the script in `folder`. */
  name: "console" | "explorer" | "upload";
  /** Below `console`. */
  folder: string;
  title: string;
  /** Shown where scripts are off. */
  without: string;
  policy: string;
  /** Whether the front page is beside it; the console may be at a listener of its own. */
  hasHome: boolean;
}>;

const consolePage: ScriptPage = {
  name: "console",
  folder: "operator",
  title: "Console",
  without: 'The console needs JavaScript. The command "cairn status" prints the same values.',
  policy: pagePolicy(),
  hasHome: false,
};

const explorerPage: ScriptPage = {
  name: "explorer",
  folder: "explorer",
  title: "Explorer",
  without: "The explorer needs JavaScript. GraphQL at /graphql has the same records.",
  // Previews are media of this origin; the page itself never shows content as HTML.
  policy: `${pagePolicy()}; media-src 'self'`,
  hasHome: true,
};

const uploadPage: ScriptPage = {
  name: "upload",
  folder: "upload",
  title: "Upload",
  without: 'The page needs JavaScript. The command "cairn upload" does the same.',
  policy: pagePolicy(),
  hasHome: true,
};

/** Creates the routes of the console. */
export function createConsoleRoutes(): AnyElysia {
  return createPageRoutes(consolePage);
}

/** Creates the routes of the explorer. */
export function createExplorerRoutes(): AnyElysia {
  return createPageRoutes(explorerPage);
}

/** What the page for uploads needs. */
export type UploadPageOptions = Readonly<{
  /** Key of a wallet that has no value outside a development chain: everyone who opens the page may use it. */
  testWallet?: JsonObject | undefined;
}>;

/** Creates the routes of the page for uploads. It uses the upload and payment services below the same origin. */
export function createUploadPageRoutes({ testWallet }: UploadPageOptions): AnyElysia {
  return createPageRoutes(uploadPage).get("/svc/upload/test-wallet", () =>
    jsonResponse(testWallet ?? null, 200, { "Cache-Control": "no-store" }),
  );
}

/** Creates the route of the module with which other pages verify content. */
export function createVerifyModuleRoute(): AnyElysia {
  const source = createAssetSource([verifyModule], bundleVerifyModule);
  return new Elysia({ strictPath: true }).get("/svc/verify.js", ({ request }) =>
    assetResponse(request, source, verifyModule, "text/javascript; charset=utf-8", moduleCache),
  );
}

const verifyModule = "verify.js.gz";

/** Its URL has no version: an hour is how long a mended module takes to arrive. */
const moduleCache = "public, max-age=3600";

async function bundleVerifyModule(): Promise<AssetFiles<typeof verifyModule>> {
  return { [verifyModule]: await bundleModule("verify", "verify.ts") };
}

/** Bundles the files of all pages from source, for the binary. @throws Error with the bundler's messages. */
export async function bundleScriptPages(): Promise<AssetFiles<string>> {
  const files = await Promise.all([...[consolePage, explorerPage, uploadPage].map(bundleFiles), bundleVerifyModule()]);
  return Object.assign({}, ...files);
}

async function bundleFiles({ name, folder }: ScriptPage): Promise<AssetFiles<string>> {
  const { js, css } = await bundlePage(folder, name, pageStyle);
  return { [`${name}.js.gz`]: js, [`${name}.css.gz`]: css };
}

function createPageRoutes(page: ScriptPage): AnyElysia {
  const { name } = page;
  const [script, style] = [`${name}.js.gz`, `${name}.css.gz`];
  const source = createAssetSource([script, style], () => bundleFiles(page));
  return new Elysia({ strictPath: true })
    .get(`/svc/${name}`, async () => writePage(page, (await source()).version))
    .get(`/svc/${name}/${name}.js`, ({ request }) =>
      assetResponse(request, source, script, "text/javascript; charset=utf-8"),
    )
    .get(`/svc/${name}/${name}.css`, ({ request }) => assetResponse(request, source, style, "text/css; charset=utf-8"));
}

function writePage({ name, title, without, policy, hasHome }: ScriptPage, version: string): Response {
  // Relative addresses: a proxy may have put the gateway below a prefix.
  const page = pageResponse(
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} · Cairn</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${name}/${name}.css?v=${version}">
</head>
<body>
<main>
<div class="brand">${pageMark}${hasHome ? '<a href="../">Cairn</a>' : "Cairn"}</div>
<div id="page"></div>
<noscript>${without}</noscript>
</main>
<script src="${name}/${name}.js?v=${version}"></script>
</body>
</html>
`,
    policy,
  );
  page.headers.set("Cache-Control", "no-store");
  page.headers.set("Referrer-Policy", "no-referrer");
  return page;
}
