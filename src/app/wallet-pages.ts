/**
 * The pages that use a wallet, and where they are served. They use the mounted services. Where content has the origin
 * of the gateway, content could use a wallet that is connected to a page.
 * Source: docs/reference/gateway.md#upload-page; docs/reference/gateway.md#account-page.
 * @module
 */
import type { Config } from "../config/settings.ts";
import type { WalletPage } from "../http/gateway/script-pages.ts";
import type { PublicUrl } from "../http/public-url.ts";

/** @param hasWallet - Whether the program has a wallet that pays for uploads. */
export function walletPagesOf(config: Config, hasWallet: boolean): readonly WalletPage[] {
  if (!config.MOUNT_SERVICES || config.CONTENT_ISOLATION === "off") return [];
  const hasUploads = config.UPLOAD_PAGE && hasWallet && config.SERVICES.includes("upload");
  const hasAccounts = config.ACCOUNT_PAGE && config.SERVICES.includes("payment");
  return [...(hasUploads ? (["upload"] as const) : []), ...(hasAccounts ? (["account"] as const) : [])];
}

/** The page of an account; undefined where it is off. It is "" for a request whose gateway has no known address. */
export function accountUrlOf(config: Config, gatewayUrl: PublicUrl): PublicUrl | undefined {
  if (!walletPagesOf(config, false).includes("account")) return undefined;
  return (request) => {
    const url = gatewayUrl(request);
    return url === "" ? "" : `${url}/svc/account`;
  };
}
