// Uploads a file with tus-js-client: it pauses after the first part, prints "paused",
// and continues at the server that the next line of its input names. The last line it
// prints is the address of the upload and where it was continued.
import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { Upload } from "tus-js-client";

const [endpoint, key] = process.argv.slice(2);
const content = Buffer.alloc(30 * 1024 * 1024 + 7, "the bytes of a file, ");
let resumedAt = -1;
let paused = false;

const upload = new Upload(content, {
  endpoint,
  headers: { Authorization: `Bearer ${key}` },
  metadata: { filename: "große datei.bin", filetype: "application/x-test" },
  chunkSize: 10 * 1024 * 1024,
  retryDelays: Array(100).fill(100),
  onAfterResponse(request, response) {
    if (request.getMethod() === "HEAD") resumedAt = Number(response.getHeader("Upload-Offset"));
  },
  async onChunkComplete() {
    if (paused) return;
    paused = true;
    await upload.abort();
    console.log("paused");
  },
  onSuccess() {
    console.log(JSON.stringify({ url: upload.url, resumedAt, sha256: createHash("sha256").update(content).digest("hex") }));
    process.exit(0);
  },
  onError(error) {
    console.error(String(error));
    process.exit(1);
  },
});
createInterface({ input: process.stdin }).once("line", (server) => {
  upload.url = server + new URL(upload.url).pathname;
  upload.start();
});
upload.start();
