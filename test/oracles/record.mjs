// Records what the vendors' own clients send for the tests of integrations.
//
//   node record.mjs DIR [SERVICE…]
//
// writes DIR/<service>/recordings.json for each script in services/, whose default
// export is
//
//   client       names of the npm packages
//   auth         the entry of the manifest that the client authenticates with
//   secrets      what the client authenticates with; made up
//   headers      names of further headers to compare; authorization always is
//   connect      ({at, secrets}) => client; at(url) is where the recorder answers for url
//   operations   for each operation (client, input, {at, secrets}) => promise: how a person
//                would do it with the client. A file in the input is {name, content}. The
//                name of a trigger begins with triggers/, and its input also has the cursor.
//                That of a hook begins with hooks/, and its input also has does (register,
//                renew or unregister), hook {url, id, secret} and the subscription
//   normalize    (request) => void: removes what is random or a detail of the client
//   differences  [{operation?, test?, request?, at, client?, ours?, why}]: see replay.Difference
//   without      {operation: why}: what the client cannot do
//
// A client sends whatever it is given, so the names in the scripts are checked against its
// types, with tsc.
//
// The recorder sends the answers of tests.yaml to the client, in their order.
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { parse } from "yaml";
import { read } from "./request.mjs";

const here = new URL(".", import.meta.url);

// serve starts the recorder. https://host/path is http://127.0.0.1:port/host/path there.
async function serve() {
  const recorder = { requests: [], answers: [] };
  const server = createServer(async (incoming, response) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    // Some clients repeat a request that has failed.
    if (recorder.answers.length > 0 || !recorder.mayFail) recorder.requests.push(await read(incoming, Buffer.concat(chunks), recorder.base));
    const { status = 200, headers = {}, json, text = "" } = recorder.answers.shift() ?? { status: 500, text: "no answer is left" };
    const local = (value) => value.replaceAll("https://", recorder.base);
    response.statusCode = status;
    response.setHeader("Content-Type", json === undefined ? "text/plain; charset=utf-8" : "application/json");
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, local(String(value)));
    response.end(json === undefined ? text : local(JSON.stringify(json)));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  recorder.base = `http://127.0.0.1:${server.address().port}/`;
  recorder.close = () => server.close();
  return recorder;
}

// withFiles replaces {$file: name} in an input.
function withFiles(value, files) {
  if (Array.isArray(value)) return value.map((item) => withFiles(item, files));
  if (value === null || typeof value !== "object") return value;
  if (value.$file !== undefined) return { name: value.$file, content: content(files[value.$file]) };
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withFiles(member, files)]));
}

// The values that hooks have in all tests; see replay.HookTest.
const hook = {
  url: "https://stepmill.example/service-hooks/token",
  id: "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
  secret: "hook-secret",
};

// inputOf returns the input of a test, with the cursor of a poll or what is about a hook.
function inputOf({ input = {}, cursor, does, subscription }) {
  if (does !== undefined) return { ...input, does, hook, subscription };
  return cursor === undefined ? input : { ...input, cursor };
}

// content returns the bytes of a file: text, or {size} for a large one with zeros.
function content(given = "") {
  return given.size === undefined ? Buffer.from(given) : Buffer.alloc(given.size);
}

async function recordTest(recorder, service, operation, test) {
  recorder.requests = [];
  recorder.answers = (test.exchanges ?? []).map((exchange) => exchange.answer ?? {});
  recorder.mayFail = test.error || recorder.answers.some((answer) => answer.status >= 400);
  const environment = { at: (url) => url.replace("https://", recorder.base), secrets: service.secrets };
  try {
    await service.operations[operation](service.connect(environment), withFiles(inputOf(test), test.files ?? {}), environment);
  } catch (error) {
    if (!recorder.mayFail) throw new Error(`${operation}, ${test.name}`, { cause: error });
  }
  const headers = ["authorization", ...(service.headers ?? [])];
  for (const request of recorder.requests) {
    request.headers = Object.fromEntries(headers.filter((name) => request.headers[name]).map((name) => [name, request.headers[name]]));
    service.normalize?.(request);
  }
  return { operation, test: test.name, requests: recorder.requests };
}

async function versions(names) {
  const { devDependencies } = JSON.parse(await readFile(new URL("package.json", here)));
  return names.map((name) => `${name} ${devDependencies[name]}`).join(", ");
}

async function record(id, service) {
  const tests = parse(await readFile(new URL(`../../integrations/${id}/tests.yaml`, here), "utf8"));
  const recorder = await serve();
  const recordings = [];
  const prefixed = (kind) => Object.entries(tests[kind] ?? {}).map(([name, list]) => [`${kind}/${name}`, list.filter(({ call }) => !call)]);
  const all = [...Object.entries(tests.operations), ...prefixed("hooks"), ...prefixed("triggers")];
  for (const [operation, list] of all.filter(([, list]) => list.length > 0)) {
    if (service.without?.[operation]) continue;
    if (!service.operations[operation]) throw new Error(`services/${id}.mjs lacks ${operation}`);
    for (const test of list) {
      if (!test.interrupted) recordings.push(await recordTest(recorder, service, operation, test)); // clients know no crashes
    }
  }
  recorder.close();
  const { auth, secrets, differences, without } = service;
  return { client: await versions([service.client].flat()), auth, secrets, differences, without, recordings };
}

// format writes a request per line.
function format({ recordings, ...file }) {
  const lines = recordings.map(({ requests, ...of }) => {
    const list = requests.map((request) => `      ${JSON.stringify(request)}`).join(",\n");
    return `    ${JSON.stringify(of).slice(0, -1)},"requests":[\n${list}\n    ]}`;
  });
  return `${JSON.stringify(file, null, 2).slice(0, -2)},\n  "recordings": [\n${lines.join(",\n")}\n  ]\n}\n`;
}

const [out, ...chosen] = process.argv.slice(2);
const scripts = (await readdir(new URL("services", here))).map((name) => name.replace(".mjs", "")).sort();
for (const id of chosen.length > 0 ? chosen : scripts) {
  const { default: service } = await import(`./services/${id}.mjs`);
  const recorded = await record(id, service);
  await mkdir(`${out}/${id}`, { recursive: true });
  await writeFile(`${out}/${id}/recordings.json`, format(recorded));
}
process.exit(); // clients keep connections open
