/**
 * A preview of content: text, pictures, sound and video. Nothing of it is run: HTML is shown as its text and, on
 * request, as a page in a frame without scripts, storage and an origin of its own.
 * @module
 */
import { useCallback, useState } from "react";
import { bytesText } from "../../src/lib/quantity-text.ts";
import { useReading } from "../use-reading.ts";
import { fetchRoute, gatewayUrl } from "./gateway-client.ts";

/** Text that is read at most. Bytes. */
const textMax = 16_384;
/** A picture that is loaded without a click. Bytes. */
const pictureMax = 8 * 2 ** 20;

const textTypes = /^(text\/|application\/(json|javascript|xml|x-yaml|graphql))|\+(json|xml)$/;

type ContentPreviewProps = Readonly<{ id: string; type: string | null; size: number }>;

export function ContentPreview({ id, type, size }: ContentPreviewProps) {
  const media = (type ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  return (
    <section aria-label="Content">
      <h2>Content</h2>
      <Preview id={id} media={media} size={size} />
      <p>
        <a href={gatewayUrl(id).pathname}>Open it</a>
      </p>
    </section>
  );
}

function Preview({ id, media, size }: Readonly<{ id: string; media: string; size: number }>) {
  const raw = gatewayUrl(`raw/${id}`).pathname;
  if (size === 0) return <p className="empty">It has no bytes.</p>;
  if (media.startsWith("image/") && size <= pictureMax) return <img className="preview" src={raw} alt="The content" />;
  if (media.startsWith("video/"))
    return (
      <video className="preview" src={raw} controls preload="metadata">
        <track kind="captions" />
      </video>
    );
  if (media.startsWith("audio/"))
    return (
      <audio src={raw} controls preload="metadata">
        <track kind="captions" />
      </audio>
    );
  if (pageTypes.has(media)) return <PagePreview id={id} size={size} />;
  if (media === "" || textTypes.test(media) || media.startsWith("image/svg"))
    return <TextPreview id={id} size={size} />;
  return <p className="empty">No preview of {media}.</p>;
}

/** Types that may have scripts. The gateway sends them from `/raw` with a sandbox policy, too. */
const pageTypes: ReadonlySet<string> = new Set(["text/html", "application/xhtml+xml"]);

/** As text first: a page may load pictures and styles from other hosts, which then see its reader. */
function PagePreview({ id, size }: Readonly<{ id: string; size: number }>) {
  const [isPage, setIsPage] = useState(false);
  return (
    <>
      {isPage ? (
        <iframe
          className="preview"
          sandbox=""
          referrerPolicy="no-referrer"
          src={gatewayUrl(`raw/${id}`).pathname}
          title="The content as a page, without scripts"
        />
      ) : (
        <TextPreview id={id} size={size} />
      )}
      <div className="buttons">
        <button type="button" onClick={() => setIsPage(!isPage)}>
          {isPage ? "Show as text" : "Show as a page"}
        </button>
      </div>
      <small>As a page, without scripts. It may load pictures and styles from other hosts.</small>
    </>
  );
}

/** Rows that a preview has without scrolling. */
const rowsMax = 20;
const columnsUsual = 100;

function rowsOf(text: string): number {
  const lines = text.split("\n").reduce((sum, line) => sum + 1 + Math.floor(line.length / columnsUsual), 0);
  return Math.min(rowsMax, lines + 1);
}

function TextPreview({ id, size }: Readonly<{ id: string; size: number }>) {
  const { value, error } = useReading(
    useCallback(
      async (signal: AbortSignal) => {
        const response = await fetchRoute(`raw/${id}`, signal, { headers: { Range: `bytes=0-${textMax - 1}` } });
        if (!response.ok) throw new Error(`the content responds with ${response.status}`);
        // A response without ranges may be long: no more than the preview is read.
        const bytes = (await response.arrayBuffer()).slice(0, textMax);
        return new TextDecoder().decode(bytes);
      },
      [id],
    ),
  );
  if (error !== undefined) return <p className="empty">No preview: {error.message}.</p>;
  if (value === undefined) return <p className="empty">Reading …</p>;
  if (value.includes("\u0000")) return <p className="empty">No preview: it is not text.</p>;
  return (
    <>
      {/* Not a pre: a text that scrolls must be reachable by keyboard. */}
      <textarea className="preview" readOnly value={value} rows={rowsOf(value)} aria-label="Text of the content" />
      {size > textMax ? <small>The first {bytesText(textMax)}.</small> : null}
    </>
  );
}
