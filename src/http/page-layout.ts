/**
 * The layout of the pages that need no script: one style, light and dark, readable at any width. They load nothing.
 * @module
 */
import { pageResponse, withBodySize } from "./responses.ts";

/** Colours, type and common elements of all pages; the console loads it from a file. */
export const pageStyle = `
:root {
  color-scheme: light dark;
  --paper: #fafaf9; --card: #ffffff; --ink: #1c1917; --soft: #57534e; --line: #d6d3d1; --accent: #0f766e;
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
@media (prefers-color-scheme: dark) {
  :root { --paper: #0c0a09; --card: #1c1917; --ink: #e7e5e4; --soft: #a8a29e; --line: #44403c; --accent: #5eead4; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); }
main { width: min(60rem, 100vw - 2.5rem); margin: 0 auto; padding: clamp(2rem, 8vh, 6rem) 0 4rem; }
main.narrow { width: min(32rem, 100vw - 2.5rem); }
.brand { display: flex; align-items: center; gap: 0.6rem; margin: 0 0 2rem; color: var(--soft); font-weight: 600; }
.brand svg { width: 1.75rem; height: 1.75rem; fill: var(--accent); }
.brand a { color: inherit; text-decoration: none; }
h1 {
  font-size: clamp(1.75rem, 5vw, 2.75rem);
  line-height: 1.15;
  letter-spacing: -0.02em;
  margin: 0 0 0.75rem;
  overflow-wrap: anywhere;
}
.narrow h1 { font-size: 1.6rem; }
h2 { font-size: 1.05rem; margin: 0 0 0.25rem; }
p { margin: 0 0 1rem; max-width: 42rem; }
.lead { font-size: 1.15rem; color: var(--soft); }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; border-radius: 4px; }
code { font: 0.9em/1.4 ui-monospace, SFMono-Regular, Menlo, monospace; overflow-wrap: anywhere; }
.values {
  display: flex;
  flex-wrap: wrap;
  gap: 0.5rem 2.5rem;
  margin: 2rem 0;
  padding: 1.25rem 0;
  border-block: 1px solid var(--line);
}
.values dt { color: var(--soft); font-size: 0.85rem; }
.values dd { margin: 0; font-size: 1.35rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.doors {
  display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(16rem, 100%), 1fr));
  gap: 1rem;
  padding: 0;
  margin: 0 0 2rem;
  list-style: none;
}
.doors a {
  display: block;
  height: 100%;
  padding: 1.1rem 1.25rem;
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 0.75rem;
  color: inherit;
  text-decoration: none;
}
.doors a:hover { border-color: var(--accent); }
.doors h2 { color: var(--accent); }
.doors p { margin: 0; color: var(--soft); font-size: 0.95rem; }
.reasons { padding: 0 0 0 1.25rem; }
.narrow dl { margin: 0 0 1rem; display: grid; grid-template-columns: auto 1fr; gap: 0.25rem 1rem; }
.narrow dt { font-weight: 600; }
.narrow dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
label { display: block; font-weight: 600; margin: 1rem 0 0.25rem; }
input, select {
  width: 100%;
  font: inherit;
  padding: 0.5rem;
  color: inherit;
  background: var(--card);
  border: 1px solid var(--soft);
  border-radius: 0.4rem;
}
::placeholder { color: var(--soft); opacity: 1; }
button { margin-top: 1.25rem; padding: 0.7rem 1.5rem; font: inherit; font-weight: 600; }
`;

const styleHash = new Bun.CryptoHasher("sha256").update(pageStyle).digest("base64");
const loads = `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:`;
const policy = `${loads}; base-uri 'none'; form-action 'self'`;

/** Three stones, each on the one below. */
export const pageMark =
  '<svg viewBox="0 0 24 24" aria-hidden="true"><rect x="8" y="3" width="8" height="5" rx="2.5"/>' +
  '<rect x="5" y="9.5" width="14" height="5" rx="2.5"/><rect x="2" y="16" width="20" height="5" rx="2.5"/></svg>';

export type Page = Readonly<{
  /** Of the window. Text. */
  title: string;
  /** Also its heading; by default the title. Text. */
  heading?: string;
  /** HTML. */
  body: string;
  status: number;
  /** Whether the page is a column of text. */
  isNarrow: boolean;
  /** Target of the link in the brand; absent on hosts without a front page. */
  home?: string;
}>;

/** A response with a page, which is not stored: it tells a state of this moment. */
export function layoutPage({ title, heading = title, body, status, isNarrow, home }: Page): Response {
  const name = home === undefined ? "Cairn" : `<a href="${escapeHtml(home)}">Cairn</a>`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style>${pageStyle}</style>
</head>
<body>
<main${isNarrow ? ' class="narrow"' : ""}>
<div class="brand">${pageMark}${name}</div>
<h1>${escapeHtml(heading)}</h1>
${body}
</main>
</body>
</html>
`;
  const { headers } = pageResponse(html, policy);
  headers.set("Cache-Control", "no-store");
  // Links may be secrets, such as that of a gift: other sites must not receive them as referrers.
  headers.set("Referrer-Policy", "no-referrer");
  return withBodySize(new Response(html, { status, headers }), Buffer.byteLength(html));
}

/** Text as HTML, also in attributes with double quotes. */
export function escapeHtml(text: string): string {
  return Bun.escapeHTML(text);
}
