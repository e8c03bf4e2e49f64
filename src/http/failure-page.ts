/**
 * The page of a failure, for people. Programs get JSON.
 * Source: docs/reference/gateway.md#pages.
 * @module
 */
import { escapeHtml, layoutPage } from "./page-layout.ts";
import type { ShownFailure } from "./server.ts";

type FailurePage = Readonly<{
  /** Text. */
  heading: string;
  /** What happened, and what a reader can do. Text. */
  text: string;
  /** The requested address; `message` is the reason as programs get it. Text. */
  address: string;
  message: string;
  /** Ways on (`linkTo`). */
  links: readonly string[];
  /** Target of the link in the brand. */
  home: string;
}>;

/** Longest shown address and reason. Characters. */
const shownMax = 300;

/** Headers of a failure that a page keeps; it is never stored. */
const passedHeaders = ["Retry-After", "WWW-Authenticate", "Connection", "Content-Range", "Allow"] as const;

/** Makes the page of a failure from its response. */
export function layoutFailure(
  { status, headers }: Response,
  { heading, text, address, message, links, home }: FailurePage,
): Response {
  const body = `<p>${escapeHtml(text)}</p>
<dl><dt>Address</dt><dd><code>${escapeHtml(address.slice(0, shownMax))}</code></dd>
<dt>Reason</dt><dd>${escapeHtml(message.slice(0, shownMax))}</dd></dl>
<p>${links.join(" · ")}</p>`;
  const page = layoutPage({ title: heading, body, status, isNarrow: true, home });
  for (const name of passedHeaders) {
    const value = headers.get(name);
    if (value !== null) page.headers.set(name, value);
  }
  page.headers.set("Vary", "Accept");
  return page;
}

export function linkTo(href: string, text: string): string {
  return `<a href="${escapeHtml(href)}">${escapeHtml(text)}</a>`;
}

/** The page of a failure at the port of a service; undefined for clients that get JSON. */
export function createServiceFailurePage(service: string) {
  return (request: Request, { response, message, context }: ShownFailure): Response | undefined => {
    if (!isOpenedByPerson(request)) return undefined;
    const heading = response.status === 404 ? "There is nothing here" : `This request failed (${response.status})`;
    const text = `This is the address of the ${service} service, which programs use.`;
    const links = [linkTo("/api-docs", "What it offers to programs")];
    const address = `${context.host}${context.target.path}`;
    return layoutFailure(response, { heading, text, message, address, links, home: "/api-docs" });
  };
}

/** Whether a browser opens the address. Our pages may not be framed: a frame shows the message itself. */
export function isOpenedByPerson({ method, headers }: Request): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  return (headers.get("sec-fetch-dest") ?? "document") === "document" && acceptsPages(headers);
}

/** Whether a client names HTML among what it accepts, as browsers do; other clients send no Accept or any type. */
export function acceptsPages(headers: Headers): boolean {
  return (headers.get("accept") ?? "").split(",").some((each) => {
    const [type = "", ...parameters] = each.split(";").map((part) => part.trim().toLowerCase());
    return type === "text/html" && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
