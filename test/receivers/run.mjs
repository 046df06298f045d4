// Runs verify.ts, compiled into the given directory, on cases: JSON on standard input, a
// list of verdicts on standard output.
import { readFileSync } from "node:fs";

const { verify } = await import(`${process.argv[2]}/verify.js`);
const cases = JSON.parse(readFileSync(0, "utf8"));
const verdicts = cases.map((c) => verify(c.secret, c.headers, Buffer.from(c.body, "base64"), c.now * 1000));
process.stdout.write(JSON.stringify(verdicts));
