/**
 * Pages of different ids in a real browser: none reads what another keeps, none takes over an origin that ids share,
 * none reads administration; and an app that knows nothing of gateways works. Under `dev`, with a root host of the
 * operator's, and what holds where no root host is known.
 * @module
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { openNode } from "../../src/chain/node.ts";
import { sandboxLabel } from "../../src/http/hosts.ts";
import { isJsonObject, type JsonValue } from "../../src/lib/json.ts";
import { rsaJwk } from "../dev/devnet/support.ts";
import { describeWith } from "../support/helpers.ts";
import { type RunningProgram, startDev } from "../support/program.ts";
import { openStack, type Stack } from "../support/stack.ts";
import { eventually } from "../support/until.ts";
import { browser as browserNeed, openBrowser } from "./browser.ts";
import { type IsolationSite, plantIsolationSite } from "./isolation-site.ts";

const root = "gateway.test";

/** Every name below the root is this machine; its pages may have service workers, as those of https may. */
const rootArguments = [
  `--host-resolver-rules=MAP *.${root} 127.0.0.1,MAP ${root} 127.0.0.1`,
  `--unsafely-treat-insecure-origin-as-secure=http://${root},*.${root}`,
];

/** What a page finds in its own storages. */
const lookAround = async () => {
  const databases = await indexedDB.databases();
  const names = databases.map(({ name }) => name);
  return {
    storage: Object.keys(localStorage),
    cookies: document.cookie,
    databases: names,
    caches: "caches" in globalThis ? await caches.keys() : [],
  };
};
const nothing = { storage: [], cookies: "", databases: [], caches: [] };

/** Looks into a frame of another address, once it is there. */
const lookInto = async (address: string) => {
  const frame = document.createElement("iframe");
  frame.src = address;
  const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
  document.body.append(frame);
  await loaded;
  try {
    return String(frame.contentWindow?.localStorage.getItem("secret"));
  } catch (error) {
    return error instanceof DOMException ? error.name : String(error);
  }
};

/** Reads an address as a page's script does. */
const readAddress = async (address: string) => {
  try {
    const reply = await fetch(address);
    return `${reply.status}`;
  } catch (error) {
    return error instanceof TypeError ? "rejected" : String(error);
  }
};

/** Tries to become the service worker of everything on its origin. */
const register = async (script: string) => {
  try {
    await navigator.serviceWorker.register(script, { scope: "/" });
    return "registered";
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
};

/** Sets 20 cookies of the largest size for a host and all below it. */
const setCookies = (domain: string) => {
  for (let index = 10; index < 30; index += 1)
    // biome-ignore lint/suspicious/noDocumentCookie: pages of strangers set them like this.
    document.cookie = `large${index}=${"x".repeat(4_085)}; Domain=${domain}; Path=/; Max-Age=3600`;
};

/** A page, and the addresses of the gateway that it is shown by. */
type Fixture = Readonly<{ site: IsolationSite; gateway: string; ownHost: (id: string) => string }>;

describeWith(browserNeed, "in a browser", () => {
  let program: RunningProgram;
  let site: IsolationSite;
  beforeAll(async () => {
    program = await startDev({ environment: { ARNS_ROOT_HOST: root } });
    const node = openNode(program.line.node);
    site = await plantIsolationSite(node, jwkOf(program));
    node.close();
    await untilThere(program.line.gateway, site);
  }, 120_000);
  afterAll(() => program?.remove());

  const rounds = [
    ["under dev", "localhost", []],
    ["with a root host", root, rootArguments],
  ] as const;
  describe.each(rounds)("%s", (_name, host, more) => {
    let browser: Browser;
    let context: BrowserContext;
    let page: Page;
    let fixture: Fixture;
    const faults: string[] = [];
    beforeAll(async () => {
      const { port } = new URL(program.line.gateway);
      const ownHost = (id: string) => `http://${sandboxLabel(id as never)}.${host}:${port}`;
      fixture = { site, gateway: `http://${host}:${port}`, ownHost };
      browser = await openBrowser(more);
      context = await browser.newContext();
      page = await context.newPage();
      page.on("pageerror", (error) => faults.push(String(error)));
      await page.goto(`${fixture.gateway}/${site.keeper}`);
      await page.waitForFunction(() => document.title === "stored");
    }, 120_000);
    afterAll(() => browser?.close());

    test("a page opens on an origin of its own, and finds there what it stored", async () => {
      expect(new URL(page.url()).origin).toBe(fixture.ownHost(site.keeper));
      expect(await page.evaluate(lookAround)).toEqual({
        storage: ["secret"],
        cookies: "secret=s3cret",
        databases: ["secrets"],
        caches: ["secrets"],
      });
    });

    test("another finds none of it, wherever the first is shown", async () => {
      await page.goto(`${fixture.gateway}/${site.thief}`);
      expect(new URL(page.url()).origin).toBe(fixture.ownHost(site.thief));
      expect(await page.evaluate(lookAround)).toEqual(nothing);
      for (const address of [
        `/${site.keeper}`, // as if it were the thief's own
        `${fixture.gateway}/${site.keeper}`,
        `${fixture.ownHost(site.keeper)}/`,
        `${fixture.gateway}/raw/${site.keeper}`,
        `${fixture.gateway}/local/social/frame/${site.keeper}`,
      ])
        expect([address, await page.evaluate(lookInto, address)]).toEqual([address, "SecurityError"]);
      // The bytes on its own origin, if they ran there, would find nothing either.
      expect(await page.evaluate(lookInto, `/raw/${site.keeper}`)).toBe("SecurityError");
    });

    test("no page runs on the host that ids share", async () => {
      for (const address of [`/raw/${site.keeper}`, `/local/social/frame/${site.keeper}`]) {
        await page.goto(fixture.gateway + address);
        expect(await page.evaluate(() => globalThis.origin)).toBe("null");
        const reached = await page.evaluate(() => {
          try {
            return Object.keys(localStorage).length;
          } catch (error) {
            return error instanceof DOMException ? error.name : String(error);
          }
        });
        expect(reached).toBe("SecurityError");
      }
      await page.goto(`${fixture.gateway}/health`);
      expect(await page.evaluate(lookAround)).toEqual(nothing);
    });

    test("no script of an id becomes the service worker of the host that ids share", async () => {
      await page.goto(`${fixture.gateway}/health`);
      for (const path of ["", "/raw", "/local/social/frame"])
        expect(await page.evaluate(register, `${path}/${site.worker}`)).toMatch(/^(TypeError|SecurityError)$/);
      await page.goto(`${fixture.gateway}/local/social/frame/${site.thief}`);
      expect(await page.evaluate(register, `/${site.worker}`)).not.toBe("registered");
      expect(await (await page.goto(`${fixture.gateway}/health`))?.text()).toContain("uptime");
    });

    test("a service worker of an id's own host works there and nowhere else", async () => {
      const other = await context.newPage();
      await other.goto(`${fixture.ownHost(site.thief)}/`);
      expect(await other.evaluate(register, `/${site.worker}`)).toBe("registered");
      await other.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
      await other.waitForFunction(() => navigator.serviceWorker.controller !== null);
      expect(await (await other.goto(`${fixture.ownHost(site.thief)}/`))?.text()).toBe("taken over");
      expect(await (await other.goto(`${fixture.ownHost(site.keeper)}/`))?.text()).toContain("s3cret");
      expect(await (await other.goto(`${fixture.gateway}/health`))?.text()).toContain("uptime");
      await other.close();
    });

    test("no page of an id reads administration", async () => {
      await page.goto(`${fixture.ownHost(site.keeper)}/`);
      for (const prefix of ["/svc/admin", "/ar-io/admin"]) {
        expect(await page.evaluate(readAddress, `${fixture.gateway}${prefix}/debug`)).toBe("rejected");
        expect(await page.evaluate(readAddress, `${prefix}/debug`)).toBe("404");
      }
      // Public routes can be read from everywhere.
      expect(await page.evaluate(readAddress, `${fixture.gateway}/svc/info`)).toBe("200");
      await page.goto(`${fixture.gateway}/local/social/frame/${site.thief}`);
      expect(await page.evaluate(readAddress, `${fixture.gateway}/svc/admin/debug`)).toBe("rejected");
    });

    test("an app that knows nothing of gateways works, and finds what it stored when it comes again", async () => {
      faults.length = 0; // faults of the blocked pages
      for (const visits of [1, 2]) {
        await page.goto(`${fixture.gateway}/${site.app}/`);
        await page.locator("#root[data-ready]").waitFor();
        expect(JSON.parse((await page.textContent("#root")) ?? "")).toEqual({
          visits,
          count: visits,
          modular: 42,
          inline: 22,
          data: { from: "the app" },
          double: 8,
        });
        expect(await page.locator("#root").evaluate((found) => getComputedStyle(found).color)).toBe("rgb(1, 2, 3)");
        expect(new URL(page.url()).origin).toBe(fixture.ownHost(site.app));
      }
      // At the root of its own host it is the same app with the same storage.
      await page.goto(`${fixture.ownHost(site.app)}/`);
      await page.locator("#root[data-ready]").waitFor();
      expect(JSON.parse((await page.textContent("#root")) ?? "").visits).toBe(3);
      expect(faults).toEqual([]);
    });

    test("X4: a page that sets 20 large cookies for the root host keeps its visitor from no id", async () => {
      await page.goto(`${fixture.ownHost(site.keeper)}/`);
      await page.evaluate(setCookies, host);
      const cookies = () => context.cookies(fixture.ownHost(site.app));
      // A browser takes `localhost` for a public suffix: cookies for it are set nowhere.
      const expected = host === root ? 20 : 0;
      await eventually(cookies, ({ length }) => length === expected); // the browser stores them behind the page
      const response = await page.goto(`${fixture.ownHost(site.app)}/?not=in-the-browser`);
      expect([response?.status(), await page.title()]).toEqual([200, "app"]);
      for (const path of ["/health", `/raw/${site.thief}`])
        expect([path, (await page.goto(fixture.gateway + path))?.status()]).toEqual([path, 200]);
      await eventually(cookies, ({ length }) => length === 0); // by Clear-Site-Data
    });
  });
});

describeWith(browserNeed, "in a browser, where no root host is known", () => {
  let stack: Stack;
  let sandboxed: Stack;
  let browser: Browser;
  let page: Page;
  const sites = new Map<Stack, IsolationSite>();
  beforeAll(async () => {
    stack = await openStack();
    sandboxed = await openStack({ CONTENT_ISOLATION: "csp" });
    for (const each of [stack, sandboxed]) {
      const node = openNode(`http://127.0.0.1:${each.node.port}`);
      sites.set(each, await plantIsolationSite(node, rsaJwk));
      node.close();
      await each.devnet.mine(1);
      await each.settled();
    }
    browser = await openBrowser();
    page = await browser.newPage();
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await stack?.close();
    await sandboxed?.close();
  });
  const open = async (of: Stack, id: (site: IsolationSite) => string) => {
    const site = sites.get(of);
    await page.goto(`${of.gateway.url}/${site === undefined ? "" : id(site)}`);
  };
  const workerOf = (of: Stack) => sites.get(of)?.worker ?? "";

  test("an app works, on the origin that all share", async () => {
    await open(stack, ({ app }) => `${app}/`);
    await page.locator("#root[data-ready]").waitFor();
    expect(JSON.parse((await page.textContent("#root")) ?? "")).toMatchObject({ visits: 1, modular: 42 });
    expect(new URL(page.url()).origin).toBe(stack.gateway.url);
  });

  test("no page becomes the service worker of that origin", async () => {
    await open(stack, ({ thief }) => thief);
    for (const path of ["", "/raw", "/local/social/frame", "/local/farcaster/frame"])
      expect(await page.evaluate(register, `${path}/${workerOf(stack)}`)).toMatch(/^(TypeError|SecurityError)$/);
    expect(await (await page.goto(`${stack.gateway.url}/health`))?.text()).toContain("uptime");
  });

  test("no page reads administration without its key", async () => {
    await open(stack, ({ thief }) => thief);
    expect(await page.evaluate(readAddress, "/svc/admin/debug")).toBe("401");
  });

  test("in mode csp a page has an origin that keeps nothing", async () => {
    await open(sandboxed, ({ thief }) => thief);
    expect(await page.evaluate(() => globalThis.origin)).toBe("null");
    expect(await page.evaluate(lookAround).catch((error) => String(error))).toContain("SecurityError");
    expect(await page.evaluate(register, `/${workerOf(sandboxed)}`)).not.toBe("registered");
    expect(await page.evaluate(readAddress, `${sandboxed.gateway.url}/svc/admin/debug`)).toBe("rejected");
  });
});

function jwkOf(program: RunningProgram) {
  const key = program.line.wallets.find(({ name }) => name === "rsa")?.jwk as JsonValue | undefined;
  if (!isJsonObject(key)) throw new Error("the program has no RSA wallet");
  return key;
}

async function untilThere(gateway: string, site: IsolationSite): Promise<void> {
  for (const id of Object.values(site))
    await eventually(
      async () => (await fetch(`${gateway}/raw/${id}`)).status,
      (status) => status === 200,
    );
}
