/**
 * The sample site's pages: what `cairn dev` puts on its chain so that there is something to open.
 * @module
 */

/** A file of the site: its path in the manifest, its type, its bytes. */
export type SiteFile = Readonly<{ path: string; contentType: string; body: string }>;

const style = `:root { color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 46rem; padding: 0 1.25rem 4rem; }
img { width: 100%; height: auto; border-radius: .75rem; margin: 1.5rem 0 .5rem; }
h1 { font-weight: 650; letter-spacing: -.02em; margin: 1.5rem 0 .25rem; }
nav a { margin-right: 1rem; }
audio { width: 100%; }
code { font-size: .9em; background: color-mix(in srgb, currentColor 10%, transparent); }
code { padding: .1em .35em; border-radius: .25em; }
.lead { opacity: .75; margin-top: 0; }`;

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<nav><a href="./">Home</a> <a href="about">About</a>
<a href="notes/1">Note 1</a> <a href="notes/2">Note 2</a></nav>
${body}
</body>
</html>
`;
}

const home = page(
  "A cairn",
  `<img src="cairn.png" width="960" height="480" alt="A cairn of six stones at dusk">
<h1>It stays where you put it</h1>
<p class="lead">This page is on your development chain: signed, bundled, mined, unbundled, verified, and served by
range.</p>
<p>The picture, the style sheet and this page are data items of one bundle. The sound below is a transaction of its own,
fetched in chunks as the player asks for them; move the slider and watch <code>206 Partial Content</code>.</p>
<audio controls preload="metadata" src="tones.wav"></audio>
<p>The notes are one level deeper, in a bundle within the bundle. One manifest gives all of them their paths.</p>`,
);

const about = page(
  "About this site",
  `<h1>About this site</h1>
<p>The path <code>about</code> is a key of the manifest; a path that is no key shows the manifest's fallback,
which is this page too.</p>
<p>Ask for it another way: <a href="/graphql">query the index</a>.</p>`,
);

/** The pages of the site, in their order in the bundle. */
export const sitePages: readonly SiteFile[] = [
  { path: "index.html", contentType: "text/html", body: home },
  { path: "about", contentType: "text/html", body: about },
  { path: "style.css", contentType: "text/css", body: style },
];

/** The notes in the nested bundle. */
export const siteNotes: readonly SiteFile[] = [
  {
    path: "notes/1",
    contentType: "text/plain; charset=utf-8",
    body: "A note in a bundle within a bundle.\n",
  },
  {
    path: "notes/2",
    contentType: "text/plain; charset=utf-8",
    body: "Another, signed by another kind of key.\n",
  },
];
