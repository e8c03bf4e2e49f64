/**
 * Pages for people at the gateway: the front page, and the reason of a failure with a way on. Programs get JSON.
 * Source: docs/reference/gateway.md#pages.
 * @module
 */
import { type Id, isId } from "../../arweave/id.ts";
import type { HealthRecord } from "../../gateway/health.ts";
import type { JsonValue } from "../../lib/json.ts";
import { isAdministration } from "../cors.ts";
import { isOpenedByPerson, layoutFailure, linkTo } from "../failure-page.ts";
import type { HostMeaning, Hosts } from "../hosts.ts";
import { escapeHtml, layoutPage } from "../page-layout.ts";
import { hostPort } from "../request-target.ts";
import type { ShownFailure } from "../server.ts";

/** Content of the front page. */
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
    if (isAdministration(path) || path.startsWith(framePrefix) || !isOpenedByPerson(request)) return undefined;
    const host = hosts.meaningOf(context.host);
    const [heading, text] = explanationOf(response, host);
    const front = frontOf(context, host, publicUrl);
    const id = response.status === 404 && has(explorerPath) ? idIn(host, path) : undefined;
    const address = `${host.kind === "shared" ? "" : context.host}${path}`;
    const inIndex = id === undefined ? [] : [linkTo(`${front}svc/explorer?id=${id}`, "Look in the index")];
    const links = [...inIndex, linkTo(front, "Front page")];
    return layoutFailure(response, { heading, text, message, address, links, home: front });
  };
}

function explanationOf({ status, headers }: Response, host: HostMeaning): readonly [heading: string, text: string] {
  if (host.kind === "name" && status === 404 && !headers.has("X-ArNS-Name")) return unknownName;
  return explanations[status] ?? [`This request failed (${status})`, "The reason is below."];
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
