/**
 * The pages with scripts: the console of the operator at `/svc/console`, beside the admin API that it reads, the
 * explorer at `/svc/explorer`, the page for uploads at `/svc/upload`, and the page of an account at `/svc/account`;
 * and the module that verifies content, at `/svc/verify.js`. They need no key, and load files of this origin only:
 * embedded in the binary (build.ts), or bundled from a folder of `console`.
 * Source: docs/reference/gateway.md#console; docs/reference/gateway.md#explorer;
 * docs/reference/gateway.md#upload-page; docs/reference/gateway.md#account-page; docs/verify-module.md;
 * docs/reference/gateway.md#isolation.
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

/** A page that uses a wallet. */
export type WalletPage = "upload" | "account";

type ScriptPage = Readonly<{
  /** Of the route below `/svc`, of the files, and of the script in `folder`. */
  name: "console" | "explorer" | WalletPage;
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
  // Previews are media of this origin; content is a page only in a sandboxed frame without scripts.
  policy: `${pagePolicy()}; media-src 'self'; frame-src 'self'`,
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

const accountPage: ScriptPage = {
  name: "account",
  folder: "account",
  title: "Credits",
  without: 'The page needs JavaScript. The commands "cairn balance" and "cairn topup" do the same.',
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

export type WalletPagesOptions = Readonly<{
  /** The pages that are served. */
  pages: readonly WalletPage[];
  /** Key of a wallet that has no value outside a development chain: everyone who opens a page may use it. */
  testWallet?: JsonObject | undefined;
}>;

/**
 * Creates the routes of the pages that use a wallet, which link one another. They use the upload and payment services
 * below the same origin.
 */
export function createWalletPageRoutes({ pages, testWallet }: WalletPagesOptions): AnyElysia {
  const served = [uploadPage, accountPage].filter(({ name }) => pages.some((each) => each === name));
  const app = new Elysia({ strictPath: true });
  for (const page of served) {
    app
      .use(createPageRoutes(page, served))
      .get(`/svc/${page.name}/test-wallet`, () =>
        jsonResponse(testWallet ?? null, 200, { "Cache-Control": "no-store" }),
      );
  }
  return app;
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
  const pages = [consolePage, explorerPage, uploadPage, accountPage];
  const files = await Promise.all([...pages.map(bundleFiles), bundleVerifyModule()]);
  return Object.assign({}, ...files);
}

async function bundleFiles({ name, folder }: ScriptPage): Promise<AssetFiles<string>> {
  const { js, css } = await bundlePage(folder, name, pageStyle);
  return { [`${name}.js.gz`]: js, [`${name}.css.gz`]: css };
}

/** @param linked - Pages that the page links in its head, itself among them. */
function createPageRoutes(page: ScriptPage, linked: readonly ScriptPage[] = []): AnyElysia {
  const { name } = page;
  const [script, style] = [`${name}.js.gz`, `${name}.css.gz`];
  const source = createAssetSource([script, style], () => bundleFiles(page));
  return new Elysia({ strictPath: true })
    .get(`/svc/${name}`, async () => writePage(page, linked, (await source()).version))
    .get(`/svc/${name}/${name}.js`, ({ request }) =>
      assetResponse(request, source, script, "text/javascript; charset=utf-8"),
    )
    .get(`/svc/${name}/${name}.css`, ({ request }) => assetResponse(request, source, style, "text/css; charset=utf-8"));
}

function writePage(page: ScriptPage, linked: readonly ScriptPage[], version: string): Response {
  const { name, title, without, policy, hasHome } = page;
  const links = linked.map(
    (each) => `<a href="${each.name}"${each === page ? ' aria-current="page"' : ""}>${each.title}</a>`,
  );
  const nav = links.length > 1 ? `<nav aria-label="Pages">${links.join("")}</nav>` : "";
  // Relative addresses: a proxy may have put the gateway below a prefix.
  const response = pageResponse(
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
<div class="brand">${pageMark}${hasHome ? '<a href="../">Cairn</a>' : "Cairn"}${nav}</div>
<div id="page"></div>
<noscript>${without}</noscript>
</main>
<script src="${name}/${name}.js?v=${version}"></script>
</body>
</html>
`,
    policy,
  );
  response.headers.set("Cache-Control", "no-store");
  response.headers.set("Referrer-Policy", "no-referrer");
  return response;
}
