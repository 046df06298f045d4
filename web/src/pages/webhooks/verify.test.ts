import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { examples } from "./verify";

const contract = readFileSync(new URL("../../../../openapi/openapi.yaml", import.meta.url), "utf8");
const {
	signing_secret: secret,
	body,
	headers,
} = parse(contract)["x-signature-example"] as {
	signing_secret: string;
	body: string;
	headers: Record<string, string>;
};
const sent = Number(headers["webhook-timestamp"]);
const code = (language: string) => examples.find((one) => one.language === language)?.code ?? "";

type Verify = (secret: string, headers: Record<string, string>, body: Buffer, now?: number) => boolean;

test("the Node example accepts only correctly signed requests", async () => {
	const { verify } = (await import(`data:text/javascript,${encodeURIComponent(code("Node"))}`)) as { verify: Verify };
	const now = sent * 1000;
	expect(verify(secret, headers, Buffer.from(body), now)).toBe(true);
	const two = { ...headers, "webhook-signature": `v1,bm8= ${headers["webhook-signature"]}` };
	expect(verify(secret, two, Buffer.from(body), now)).toBe(true);
	expect(verify(secret, headers, Buffer.from(`${body} `), now)).toBe(false);
	expect(verify(secret, headers, Buffer.from(body), now + 301_000)).toBe(false);
	expect(verify(secret, {}, Buffer.from(body), now)).toBe(false);
	expect(verify(`whsec_${"A".repeat(43)}=`, headers, Buffer.from(body), now)).toBe(false);
});

function python(): boolean {
	try {
		execFileSync("python3", ["--version"], { stdio: "ignore" });
		return true;
	} catch {
		return false;
	}
}

test.runIf(python())("the Python example accepts only correctly signed requests", () => {
	const ask = (given: string, now: number) =>
		execFileSync(
			"python3",
			[
				"-c",
				`${code("Python")}\nimport json, sys\ns, h, b, n = json.load(sys.stdin)\nprint(verify(s, h, b.encode(), n))`,
			],
			{
				input: JSON.stringify([secret, headers, given, now]),
				encoding: "utf8",
			},
		).trim();
	expect(ask(body, sent)).toBe("True");
	expect(ask(`${body} `, sent)).toBe("False");
	expect(ask(body, sent + 301)).toBe("False");
});
