/**
 * A process that claims events, each many times at once: `bun claim-child.ts <place> <events> <claims> <seed>`. Prints
 * the name of each event for each claim that was notified it had won.
 * @module
 */
import { openPlace } from "../../support/ledger-place.ts";
import { claimAll } from "./claims.ts";

const [place = "", events = "0", claims = "0", seed = "0"] = process.argv.slice(2);
const database = await openPlace(place);
const won = await claimAll(database, { events: Number(events), claims: Number(claims), seed: Number(seed) });
await database.close();
console.log(JSON.stringify(won));
