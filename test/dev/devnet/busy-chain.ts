/**
 * A chain that is written to without pause, to be killed: prints what it has acknowledged, one thing a line.
 * @module
 */
import { chunkPosts, ecdsa, openTestDevnet, post, statedOf, testBytes } from "./support.ts";

const [, , dir = "", round = "0"] = process.argv;
const devnet = await openTestDevnet({ dir, wallets: [] });
devnet.mint(ecdsa.address, 10n ** 18n);

for (let index = 0; ; index += 1) {
  const data = testBytes(280_000, 1_000 * Number(round) + index + 1);
  const transaction = await post(devnet, ecdsa, { stated: statedOf(data) });
  console.log(`transaction ${transaction.id}`);
  for (const body of chunkPosts(data)) {
    devnet.postChunk(body);
    console.log(`chunk ${transaction.id} ${JSON.parse(body).offset}`);
  }
  const block = await devnet.mine(1 + (index % 3));
  console.log(`block ${block.hash} ${block.height}`);
}
