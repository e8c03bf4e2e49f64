/**
 * The pages that the payment service shows to people: plain, without scripts, loading nothing.
 * @module
 */
import { pageResponse } from "../responses.ts";

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; display: grid; place-items: center; min-height: 100vh; background: Canvas; color: CanvasText; }
main { width: min(28rem, 100vw - 2rem); }
h1 { font-size: 1.5rem; margin: 0 0 0.5rem; overflow-wrap: anywhere; }
label { display: block; font-weight: 600; margin: 1rem 0 0.25rem; }
input, select { width: 100%; box-sizing: border-box; font: inherit; padding: 0.5rem; }
dl { margin: 0 0 1rem; display: grid; grid-template-columns: auto 1fr; gap: 0.25rem 1rem; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
button { margin-top: 1.25rem; padding: 0.75rem 1.5rem; font: inherit; font-weight: 600; }
`;

const styleHash = new Bun.CryptoHasher("sha256").update(style).digest("base64");

/**
 * A response with a page.
 *
 * @param title - Also its heading; safe as HTML.
 * @param body - HTML.
 */
export function paymentPage(title: string, body: string, status: number): Response {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`;
  const loads = `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:`;
  const policy = `${loads}; base-uri 'none'; form-action 'self'`;
  const { headers } = pageResponse(html, policy);
  headers.set("Cache-Control", "no-store");
  // A gift's link is the gift: no other place may learn of it.
  headers.set("Referrer-Policy", "no-referrer");
  return new Response(html, { status, headers });
}
