import { deflateSync } from "node:zlib";
import type { Page } from "playwright-core";

/** A file to upload. */
export interface Sample {
	name: string;
	type: string;
	bytes: Buffer;
}

export const sample = (name: string, type: string, bytes: string | Buffer): Sample => ({
	name,
	type,
	bytes: Buffer.from(bytes as string),
});

/** attack leaves marks wherever a script could. */
const attack = `try { localStorage.setItem("owned", "1"); document.cookie = "owned=1; path=/"; window.owned = 1; top.owned = 1; } catch {} alert("owned");`;

export const scripted = `<!doctype html><title>owned</title><script>${attack}</script><img src=x onerror='${attack.replaceAll('"', "&quot;")}'>`;

/** An image with every kind of script that SVG knows. */
const svg = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="240" height="120" onload="${attack.replaceAll('"', "&quot;")}">
<script>${attack.replaceAll("&", "&amp;")}</script>
<rect width="240" height="120" fill="#2f6f4f"/>
<a xlink:href="javascript:window.owned=1"><circle cx="120" cy="60" r="40" fill="#f0c040"/></a>
<foreignObject width="10" height="10"><iframe xmlns="http://www.w3.org/1999/xhtml" src="javascript:parent.owned=1"></iframe></foreignObject>
<image href="https://example.com/tracker.png" width="1" height="1"/>
</svg>`;

export const hostile: Sample[] = [
	sample("drawing.svg", "image/svg+xml", svg),
	sample("page.html", "text/html", scripted),
	sample("../../x<script>.html", "text/html", scripted),
	sample("fake.png", "image/png", scripted),
	sample("polyglot.gif", "image/gif", `GIF89a/*${"\0".repeat(20)}*/=1;${attack}//<script>${attack}</script>`),
	sample(
		"page.xhtml",
		"application/xhtml+xml",
		`<html xmlns="http://www.w3.org/1999/xhtml"><script>${attack}</script></html>`,
	),
	sample("script.xml", "text/xml", `<x><script xmlns="http://www.w3.org/1999/xhtml">${attack}</script></x>`),
	sample("script.js", "text/javascript", attack),
	sample(
		"formula.csv",
		"text/csv",
		`name;value\n=HYPERLINK("javascript:alert(1)");@SUM(A1)\n<script>window.owned=1</script>;"a;""b"""\n`,
	),
	sample("unknown", "application/octet-stream", scripted),
];

/** png returns a square image in one color. */
export function png(size: number): Buffer {
	const chunk = (type: string, data: Buffer) => {
		const body = Buffer.concat([Buffer.from(type), data]);
		const out = Buffer.alloc(body.length + 8);
		out.writeUInt32BE(data.length);
		body.copy(out, 4);
		out.writeUInt32BE(crc(body), body.length + 4);
		return out;
	};
	const header = Buffer.alloc(13);
	header.writeUInt32BE(size, 0);
	header.writeUInt32BE(size, 4);
	header.set([8, 2, 0, 0, 0], 8);
	const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(size * 3, Buffer.from([70, 110, 220]))]);
	const pixels = deflateSync(Buffer.concat(Array.from({ length: size }, () => row)));
	const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
	return Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
}

function crc(bytes: Buffer): number {
	let sum = -1;
	for (const byte of bytes) {
		sum ^= byte;
		for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
	}
	return (sum ^ -1) >>> 0;
}

/** wav returns a second of a tone. */
export function wav(): Buffer {
	const samples = Buffer.from(Array.from({ length: 8_000 }, (_, at) => 128 + Math.round(100 * Math.sin(at / 3))));
	const header = Buffer.alloc(44);
	header.write("RIFF", 0);
	header.writeUInt32LE(36 + samples.length, 4);
	header.write("WAVEfmt ", 8);
	header.writeUInt32LE(16, 16);
	header.writeUInt16LE(1, 20);
	header.writeUInt16LE(1, 22);
	header.writeUInt32LE(8_000, 24);
	header.writeUInt32LE(8_000, 28);
	header.writeUInt16LE(1, 32);
	header.writeUInt16LE(8, 34);
	header.write("data", 36);
	header.writeUInt32LE(samples.length, 40);
	return Buffer.concat([header, samples]);
}

/** drawn lets the browser encode an image, as "image/jpeg" or "image/webp". */
export async function drawn(page: Page, type: string): Promise<Buffer> {
	const url = await page.evaluate((type) => {
		const canvas = document.createElement("canvas");
		const pen = canvas.getContext("2d");
		pen?.fillRect(10, 10, 100, 50);
		return canvas.toDataURL(type);
	}, type);
	return Buffer.from(url.split(",")[1] ?? "", "base64");
}

/** recorded lets the browser record a short video. */
export async function recorded(page: Page): Promise<Buffer> {
	const bytes = await page.evaluate(async () => {
		const canvas = document.createElement("canvas");
		const pen = canvas.getContext("2d");
		const recorder = new MediaRecorder(canvas.captureStream(20), { mimeType: "video/webm" });
		const pieces: Blob[] = [];
		recorder.ondataavailable = (event) => pieces.push(event.data);
		const ended = new Promise((resolve) => {
			recorder.onstop = resolve;
		});
		recorder.start();
		for (let frame = 0; frame < 10; frame++) {
			if (pen) pen.fillStyle = frame % 2 ? "#2f6f4f" : "#f0c040";
			pen?.fillRect(0, 0, 300, 150);
			await new Promise((resolve) => setTimeout(resolve, 50));
		}
		recorder.stop();
		await ended;
		return [...new Uint8Array(await new Blob(pieces).arrayBuffer())];
	});
	return Buffer.from(bytes);
}
