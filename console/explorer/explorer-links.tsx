/**
 * Addresses of the explorer's pages: each is a query string, so every page is a link that can be shared.
 * @module
 */
import type { MouseEvent, ReactNode } from "react";

/** Opens a page of the explorer. @param search - As `searchOf` writes it. */
export function openPage(search: string): void {
  history.pushState(null, "", `${location.pathname}${search}`);
  dispatchEvent(new PopStateEvent("popstate"));
  scrollTo(0, 0);
}

/** The query string of a page. */
export function searchOf(values: readonly (readonly [name: string, value: string | undefined])[]): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of values) if (value !== undefined) parameters.append(name, value);
  return `?${parameters}`;
}

type PageLinkProps = Readonly<{ to: string; children: ReactNode; current?: boolean; label?: string }>;

/** A link to a page of the explorer; a click with a modifier key is the browser's. */
export function PageLink({ to, children, current = false, label }: PageLinkProps) {
  const open = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    openPage(to);
  };
  return (
    <a href={to} onClick={open} aria-current={current ? "page" : undefined} aria-label={label}>
      {children}
    </a>
  );
}

/** A long id, shortened where it is narrow; the complete one is its label. */
function ShortText({ text }: Readonly<{ text: string }>) {
  return <code title={text}>{`${text.slice(0, 8)}…${text.slice(-6)}`}</code>;
}

export function TransactionLink({ id, whole = false }: Readonly<{ id: string; whole?: boolean }>) {
  return (
    <PageLink to={searchOf([["id", id]])} label={id}>
      {whole ? <code>{id}</code> : <ShortText text={id} />}
    </PageLink>
  );
}

export function AddressLink({ address, whole = false }: Readonly<{ address: string; whole?: boolean }>) {
  return (
    <PageLink to={searchOf([["address", address]])} label={address}>
      {whole ? <code>{address}</code> : <ShortText text={address} />}
    </PageLink>
  );
}

/** @param block - Its height, or its hash. */
export function BlockLink({ block, children }: Readonly<{ block: string | number; children: ReactNode }>) {
  return <PageLink to={searchOf([["block", String(block)]])}>{children}</PageLink>;
}

/** The page of a tag's rows. */
export function TagLink({ name, value }: Readonly<{ name: string; value: string }>) {
  return (
    <PageLink to={searchOf([["tag", `${name}=${value}`]])} label={`Rows with the tag ${name}: ${value}`}>
      {value === "" ? <i>empty</i> : value}
    </PageLink>
  );
}
