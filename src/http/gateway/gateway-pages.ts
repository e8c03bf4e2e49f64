/**
 * Pages for people at the gateway: the front page, and the reason of a failure with a way on. Programs get JSON.
 * Source: docs/reference/gateway.md#pages.
 * @module
 */
import { type Id, isId } from "../../arweave/id.ts";
import type { HealthRecord } from "../../gateway/health.ts";
import type { JsonValue } from "../../lib/json.ts";
import { isAdministration } from "../cors.ts";
import type { HostMeaning, Hosts } from "../hosts.ts";
import { escapeHtml, layoutPage } from "../page-layout.ts";
import { hostPort } from "../request-target.ts";
import type { ShownFailure } from "../server.ts";

/** What the front page tells. */
export type FrontPage = Readonly<{
  release: string;
  health: HealthRecord;
  /** URLs or paths of the other services, by name. */
  services: Readonly<Record<string, JsonValue>>;
  /** Whether the gateway has a route. */
  has: (path: string) => boolean;
}>;

type Door = Readonly<{ href: string; name: string; text: string }>;

/** Doors to what an operator may switch off. */
const queryDoors: readonly Door[] = [
  {
    href: "/svc/explorer",
    name: "Explore",
    text: "Blocks, transactions and data items as they arrive, with their tags, bundles and proofs.",
  },
  {
    href: "/graphql",
    name: "Query",
    text: "Find transactions and data items by tag, owner or block with GraphQL.",
  },
];

/** @param href - The page for uploads, or the reference of the service. */
function uploadDoor(href: string): Door {
  return {
    href,
    name: "Upload",
    text: "Store files for ever: signed data items, paid by credits.",
  };
}

const creditsDoor: Door = {
  href: "/svc/account",
  name: "Credits",
  text: "The credits of your wallet and their history; more of them by card or in tokens.",
};

/** The front page, of a gateway whose operator set no content for it. */
export function frontPage({ release, health, services, has }: FrontPage): Response {
  const { chain, status, reasons } = health;
  const upload = services["upload"];
  const doors: readonly Door[] = [
    ...queryDoors.filter(({ href }) => has(href)),
    { href: "/api-docs", name: "Build", text: "Every route of this gateway, with its parameters, to read and to try." },
    ...(typeof upload === "string" ? [uploadDoor(has("/svc/upload") ? "/svc/upload" : `${upload}/api-docs`)] : []),
    ...(has(creditsDoor.href) ? [creditsDoor] : []),
    has("/svc/console")
      ? {
          href: "/svc/console",
          name: "Operate",
          text: "For the operator, with the admin key: status, charts, actions.",
        }
      : { href: "/svc/healthcheck", name: "Operate", text: "Health, with the reasons when something is wrong." },
  ];
  const values: readonly (readonly [string, string])[] = [
    ["Height", numberOf(chain?.height)],
    ["Blocks behind", numberOf(chain?.lag)],
    ["Status", status === "ok" ? "Healthy" : "Unhealthy"],
    ["Release", release],
  ];
  const shown = values.map(([name, value]) => `<div><dt>${name}</dt><dd>${escapeHtml(value)}</dd></div>`);
  const body = `<p class="lead">A gateway to permanent storage. Open content by its id, at <code>/{id}</code>, or by its
name. Content that it sends as verified was checked against the chain, byte by byte.</p>
<dl class="values">${shown.join("")}</dl>
${reasonsOf(reasons)}<ul class="doors">${doors.map(doorOf).join("")}</ul>`;
  return layoutPage({ title: "Cairn", heading: "Content that stays", body, status: 200, isNarrow: false, home: "/" });
}

function numberOf(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toLocaleString("en");
}

function reasonsOf(reasons: readonly string[]): string {
  if (reasons.length === 0) return "";
  return `<ul class="reasons">${reasons.map((reason) => `<li>${escapeHtml(reason)}</li>`).join("")}</ul>`;
}

function doorOf({ href, name, text }: Door): string {
  return `<li><a href="${escapeHtml(href)}"><h2>${name}</h2><p>${text}</p></a></li>`;
}

/** Explanations by status, and what a reader can do. */
const explanations: Readonly<Record<number, readonly [heading: string, text: string]>> = {
  400: ["This address cannot be read", "It is not an id, a name or a path of this gateway."],
  402: ["A payment is needed", "This request is beyond what this gateway serves free of charge."],
  404: [
    "There is nothing here",
    "This gateway has nothing at this address, and found nothing at the nodes and gateways that it asks. Content " +
      "that was uploaded a moment ago may take some minutes to arrive.",
  ],
  410: ["This content is gone", "It was here, and is no longer served."],
  429: ["Too many requests", "Wait a few seconds, then open this page again."],
  451: ["This content is blocked", "The operator of this gateway does not serve it. Other gateways may."],
  502: [
    "A source failed",
    "The nodes and gateways that have this content did not give it. That does not mean that it is lost: open this " +
      "page again in a moment.",
  ],
  503: ["Too busy for a moment", "Open this page again in a few seconds."],
  504: [
    "A source took too long",
    "The nodes and gateways that have this content did not respond in time. That does not mean that it is lost: " +
      "open this page again in a moment.",
  ],
};

const unknownName: readonly [heading: string, text: string] = [
  "This name is not known",
  "No registry that this gateway reads has the name. It may be misspelt, or have expired.",
];

export type FailurePages = Readonly<{
  hosts: Pick<Hosts, "meaningOf">;
  /** Where the operator says that the gateway is. */
  publicUrl: string | undefined;
  /** Whether the gateway has a route. */
  has: (path: string) => boolean;
}>;

/** The page of a failure; undefined for clients that get JSON. */
export function createFailurePage({ hosts, publicUrl, has }: FailurePages) {
  return (request: Request, { response, message, context }: ShownFailure): Response | undefined => {
    const { path } = context.target;
    if (!isShownAsPage(request, path)) return undefined;
    const host = hosts.meaningOf(context.host);
    const [heading, text] = explanationOf(response, host);
    const front = frontOf(context, host, publicUrl);
    const id = response.status === 404 && has(explorerPath) ? idIn(host, path) : undefined;
    const inIndex = id === undefined ? "" : `${linkTo(`${front}svc/explorer?id=${id}`, "Look in the index")} · `;
    const address = `${host.kind === "shared" ? "" : context.host}${path}`;
    const body = `<p>${text}</p>
<dl><dt>Address</dt><dd><code>${escapeHtml(address.slice(0, shownMax))}</code></dd>
<dt>Reason</dt><dd>${escapeHtml(message.slice(0, shownMax))}</dd></dl>
<p>${inIndex}${linkTo(front, "Front page")}</p>`;
    const page = layoutPage({ title: heading, body, status: response.status, isNarrow: true, home: front });
    for (const name of passedHeaders) {
      const value = response.headers.get(name);
      if (value !== null) page.headers.set(name, value);
    }
    page.headers.set("Vary", "Accept");
    return page;
  };
}

function explanationOf({ status, headers }: Response, host: HostMeaning): readonly [heading: string, text: string] {
  if (host.kind === "name" && status === 404 && !headers.has("X-ArNS-Name")) return unknownName;
  return explanations[status] ?? [`This request failed (${status})`, "The reason is below."];
}

function linkTo(href: string, text: string): string {
  return `<a href="${escapeHtml(href)}">${text}</a>`;
}

const explorerPath = "/svc/explorer";

/** The front page: on the host of an id or a name, `/` is its content. */
function frontOf({ scheme, host }: ShownFailure["context"], meant: HostMeaning, publicUrl: string | undefined): string {
  if (meant.kind === "shared") return "/";
  return `${(publicUrl ?? `${scheme}://${meant.root}${hostPort(host)}`).replace(/\/+$/, "")}/`;
}

/** The id that a request asks for; undefined when it names none. */
function idIn(host: HostMeaning, path: string): Id | undefined {
  const [, first = "", second = ""] = path.split("/");
  const text = first === "raw" || first === "tx" ? second : first;
  if (isId(text)) return text;
  return host.kind === "sandbox" ? host.id : undefined;
}

/** Routes whose responses are made for frames. */
const framePrefix = "/local/";

/** Longest shown address and reason. Characters. */
const shownMax = 300;

/** Headers of a failure that a page keeps; it is never stored. */
const passedHeaders = ["Retry-After", "WWW-Authenticate", "Connection", "Content-Range", "Allow"] as const;

/** Whether a failure of a request is shown as a page: a browser opens it, and it is not of an API for programs. */
function isShownAsPage(request: Request, path: string): boolean {
  if (request.method !== "GET" && request.method !== "HEAD") return false;
  if (isAdministration(path) || path.startsWith(framePrefix)) return false;
  // Our pages may not be framed: a frame shows the message itself.
  return (request.headers.get("sec-fetch-dest") ?? "document") === "document" && acceptsPages(request.headers);
}

/** Whether a client names HTML among what it accepts, as browsers do; other clients send no Accept or any type. */
export function acceptsPages(headers: Headers): boolean {
  return (headers.get("accept") ?? "").split(",").some((each) => {
    const [type = "", ...parameters] = each.split(";").map((part) => part.trim().toLowerCase());
    return type === "text/html" && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
