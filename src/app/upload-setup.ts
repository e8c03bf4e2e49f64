/**
 * What the parts of the upload service are opened with.
 * @module
 */
import type { PublicUrl } from "../http/public-url.ts";
import type { Base, BaseParts } from "./base.ts";
import type { OpenPayment } from "./payment.ts";
import type { UploadWallet } from "./upload-wallet.ts";

/** What the upload service is opened with. */
export type UploadParts = BaseParts &
  Readonly<{
    base: Base;
    payment: OpenPayment;
    /** Undefined: uploads are off. */
    wallet: UploadWallet | undefined;
    /** Where a caller reaches the gateway, and this service. */
    gatewayUrl: PublicUrl;
    publicUrl: PublicUrl;
  }>;
