/**
 * Sessions of a thread: the open resource is closed with the last step, also after an error.
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createFileSessions } from "../../src/store/file-sessions.ts";

function openFixture() {
  const closed: string[] = [];
  const sessions = createFileSessions<string>((name) => closed.push(name));
  return { closed, ...sessions };
}

test("a session is open until its last result, and then closed", () => {
  const { step, leave, closed } = openFixture();
  const more = () => ({ kind: "more" }) as const;
  expect(step("s", () => "file", more)).toEqual({ kind: "more" });
  expect(step("s", undefined, more)).toEqual({ kind: "more" });
  expect(closed).toEqual([]);
  expect(step("s", undefined, (open) => ({ kind: "end", open }))).toEqual({ kind: "end", open: "file" });
  expect(closed).toEqual(["file"]);
  expect(step("s", undefined, more)).toEqual({ kind: "lost" });
  leave("s");
  expect(closed).toEqual(["file"]);
});

test("a session that is left is closed, and is then lost", () => {
  const { step, leave, closed } = openFixture();
  step(
    "s",
    () => "file",
    () => ({ kind: "more" }),
  );
  leave("s");
  expect([closed, step("s", undefined, () => ({ kind: "more" }))]).toEqual([["file"], { kind: "lost" }]);
});

const readNothing = () => readFileSync("/unnamed/has/this");
test("a system error is returned, at the beginning or later, and ends the session", () => {
  const { step, closed } = openFixture();
  const unread = { kind: "unread", reason: expect.stringContaining("ENOENT") };
  expect(
    step(
      "s",
      () => String(readNothing()),
      () => ({ kind: "more" }),
    ),
  ).toEqual(unread);
  expect(closed).toEqual([]);
  const fails = () => ({ kind: String(readNothing()) });
  expect(step("t", () => "file", fails)).toEqual(unread);
  expect(closed).toEqual(["file"]);
});

test("a defect is thrown, and ends the session", () => {
  const { step, closed } = openFixture();
  const breaks = () => {
    throw new Error("a defect");
  };
  expect(() => step("s", () => "file", breaks)).toThrow("a defect");
  expect([closed, step("s", undefined, () => ({ kind: "more" }))]).toEqual([["file"], { kind: "lost" }]);
});
