/**
 * Who asks: the peer, or whom a trusted proxy names; and what of an address one customer has.
 * @module
 */
import { describe, expect, test } from "bun:test";
import { proxyTest } from "../../src/app/list-settings.ts";
import { addressBlock, clientAddressOf } from "../../src/http/client-address.ts";

const isTrusted = proxyTest(["10.0.0.0/8", "192.168.1.1", "fd00::/8"]);

describe("the proxies of the settings", () => {
  test.each([
    ["10.1.2.3", true],
    ["::ffff:10.1.2.3", true],
    ["11.1.2.3", false],
    ["192.168.1.1", true],
    ["192.168.1.2", false],
    ["fd12::1", true],
    ["fe80::1", false],
    ["", false],
    ["no address", false],
  ])("%p is one of them: %p", (address, expected) => {
    expect(isTrusted(address)).toBe(expected);
  });

  test.each([
    "elsewhere",
    "10",
    "10/8",
    "10.1",
    "010.0.0.1",
    "0x7f.0.0.1",
    "10.0.0.1/33",
    "10.0.0.1/",
    "/8",
    "::1/129",
  ])("%p is neither an address nor a block, and a misuse of the setting", (text) => {
    expect(() => proxyTest(["10.0.0.0/8", text])).toThrow(`'${text}' for TRUSTED_PROXIES: expected an address or`);
  });
});

describe("the client's address", () => {
  test.each([
    ["203.0.113.9", null, "203.0.113.9"],
    ["203.0.113.9", "198.51.100.1", "203.0.113.9"], // any client can send the header
    ["10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["10.0.0.1", "1.1.1.1, 198.51.100.1", "198.51.100.1"], // what the client wrote itself comes first
    ["10.0.0.1", "1.1.1.1, 198.51.100.1, 10.0.0.2", "198.51.100.1"],
    ["10.0.0.1", "10.0.0.3,10.0.0.2", "10.0.0.3"],
    ["10.0.0.1", "198.51.100.1, nonsense", "10.0.0.1"],
    ["10.0.0.1", "", "10.0.0.1"],
    ["10.0.0.1", null, "10.0.0.1"],
    ["fd00::1", "2001:db8::5", "2001:db8::5"],
    ["", "198.51.100.1", ""],
    ["10.0.0.1", `1.1.1.1,${Array(40).fill("10.0.0.2").join(",")}`, "10.0.0.2"], // an honest list is not that long
  ] as const)("peer %p with X-Forwarded-For %p is %p", (peer, forwarded, expected) => {
    expect(clientAddressOf(peer, forwarded, isTrusted)).toBe(expected);
  });
});

describe("the block of an address", () => {
  test.each([
    ["198.51.100.1", "198.51.100.1"],
    ["::ffff:198.51.100.1", "198.51.100.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:db8:1:2::", "2001:db8:1:2::/64"],
    ["2001:db8:1:3::1", "2001:db8:1:3::/64"],
    ["", ""],
  ])("%p belongs to %p", (address, expected) => {
    expect(addressBlock(address)).toBe(expected);
  });
});
