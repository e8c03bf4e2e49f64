/**
 * Lists of addresses in settings, each read into the one text that stands for it.
 * @module
 */
import { readAddress } from "../payment/addresses.ts";
import { badSettings } from "./complaints.ts";

/**
 * Reads the addresses of a setting.
 *
 * @param name - The setting's, for the complaint.
 * @throws Misuse that names every text which is no address.
 */
export function readAddressList(name: string, texts: readonly string[]): ReadonlySet<string> {
  const read = texts.map((text) => ({ text, address: readAddress(text)?.address }));
  const complaints = read
    .filter(({ address }) => address === undefined)
    .map(({ text }) => `${name}: "${text}" is no address`);
  if (complaints.length > 0) throw badSettings(complaints);
  return new Set(read.flatMap(({ address }) => (address === undefined ? [] : [address])));
}
