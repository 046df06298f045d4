// A receiver that verifies deliveries with third-party libraries. PUT /secret sets the
// secret, GET /seen returns the verdict on each delivery.
import { createServer } from "node:http";
import { verify } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";

let secret = "";
const seen = [];

async function judge(headers, body) {
  const octokit = await verify(secret, body, headers["x-service-signature"] ?? "").catch(() => false);
  let standard = true;
  try {
    new Webhook(secret).verify(body, headers);
  } catch {
    standard = false;
  }
  return { delivery: headers["x-service-delivery"], event: headers["x-service-event"], octokit, standard };
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString("utf8");
  if (request.url === "/secret") {
    secret = body;
    response.end();
  } else if (request.url === "/seen") {
    response.end(JSON.stringify(seen));
  } else {
    const verdict = await judge(request.headers, body);
    seen.push(verdict);
    response.statusCode = verdict.octokit && verdict.standard ? 204 : 401;
    response.end(verdict.octokit && verdict.standard ? undefined : JSON.stringify(verdict));
  }
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume().on("end", () => process.exit()); // it exits with the test
