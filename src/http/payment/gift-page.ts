/**
 * What a gift's link shows to a person: a form that asks for the address, and what came of it. Works without scripts.
 * @module
 */
import { pageAnswer } from "../answers.ts";

/** What an address may be of, by its word and for people. */
const kinds = [
  ["native", "Arweave"],
  ["ethereum", "Ethereum, Polygon, Base"],
  ["solana", "Solana"],
  ["kyve", "KYVE"],
] as const;

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; display: grid; place-items: center; min-height: 100vh; background: Canvas; color: CanvasText; }
main { width: min(28rem, 100vw - 2rem); }
h1 { font-size: 1.5rem; margin: 0 0 0.5rem; overflow-wrap: anywhere; }
label { display: block; font-weight: 600; margin: 1rem 0 0.25rem; }
input, select { width: 100%; box-sizing: border-box; font: inherit; padding: 0.5rem; }
button { margin-top: 1.25rem; padding: 0.75rem 1.5rem; font: inherit; font-weight: 600; }
`;

const styleHash = new Bun.CryptoHasher("sha256").update(style).digest("base64");

/** The form. @param secret - Of the link; base64url, checked. */
export function giftForm(secret: string): Response {
  const options = kinds.map(([word, name]) => `<option value="${word}">${name}</option>`).join("");
  return page(
    "A gift of storage credits",
    `<p>Say which account gets it. A gift is taken once.</p>
<form method="post" action="?id=${secret}">
<label for="address">Address</label>
<input id="address" name="destinationAddress" required autocomplete="off" spellcheck="false" maxlength="64">
<label for="token">of</label>
<select id="token" name="token">${options}</select>
<button type="submit">Take it</button>
</form>`,
    200,
  );
}

/** What came of it, in one sentence of ours or of a failure. */
export function giftOutcome(sentence: string, status: number): Response {
  return page(sentence, "", status);
}

function page(title: string, body: string, status: number): Response {
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
  const { headers } = pageAnswer(html, policy);
  headers.set("Cache-Control", "no-store");
  // The link is the gift: no other place may learn of it.
  headers.set("Referrer-Policy", "no-referrer");
  return new Response(html, { status, headers });
}
