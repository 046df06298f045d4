// begin: verify
import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

// Checks a delivery. The body must be as it was received, byte for byte.
export function verify(secret: string, headers: IncomingHttpHeaders, body: Buffer, now = Date.now()): boolean {
  const id = headers["webhook-id"];
  const sent = headers["webhook-timestamp"];
  const given = headers["webhook-signature"];
  if (typeof id !== "string" || typeof sent !== "string" || typeof given !== "string") return false;
  if (!/^\d{1,12}$/.test(sent) || Math.abs(now / 1000 - Number(sent)) > 300) return false;

  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const want = Buffer.from("v1," + createHmac("sha256", key).update(`${id}.${sent}.`).update(body).digest("base64"));
  return given.split(" ").some((one) => {
    const signature = Buffer.from(one);
    return signature.length === want.length && timingSafeEqual(signature, want);
  });
}
// end: verify
