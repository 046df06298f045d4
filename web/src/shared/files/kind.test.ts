import { expect, test } from "vitest";
import { classify } from "./kind";

test.each([
	["a.png", "image/png", { kind: "image", media: "image/png" }],
	["a.png", "IMAGE/PNG; x=y", { kind: "image", media: "image/png" }],
	["a.jpg", "image/jpg", { kind: "image", media: "image/jpeg" }],
	["a.avif", "image/avif", { kind: "image", media: "image/avif" }],
	["a.mp3", "audio/mpeg", { kind: "audio", media: "audio/mpeg" }],
	["a.webm", "video/webm", { kind: "video", media: "video/webm" }],
	["a.svg", "image/svg+xml", { kind: "svg" }],
	["a.pdf", "application/pdf", { kind: "pdf" }],
	["a.json", "application/json; charset=utf-8", { kind: "json" }],
	["a", "application/problem+json", { kind: "json" }],
	["a", "application/x-ndjson", { kind: "lines" }],
	["a", "text/csv", { kind: "csv" }],
	["a", "text/plain", { kind: "text" }],
	["report.csv", "text/plain", { kind: "csv" }],
	["photo.JPEG", "application/octet-stream", { kind: "image", media: "image/jpeg" }],
	["a.zip", "application/zip", { kind: "other" }],
	["a", "application/octet-stream", { kind: "other" }],
	["csv", "application/octet-stream", { kind: "other" }],
	["a.exe", "", { kind: "other" }],
	["a.bmp", "image/bmp", { kind: "other" }],
])("%s of type %s", (name, type, want) => {
	expect(classify({ name, type })).toEqual(want);
});

// What a browser could execute is text, whatever its name.
test.each([
	["x.png", "text/html"],
	["x.html", "text/html;charset=utf-8"],
	["x.html", "application/octet-stream"],
	["x.png", "application/xhtml+xml"],
	["x.png", "application/xml"],
	["x.png", "text/xml"],
	["x.png", "application/mathml+xml"],
	["x.png", "text/javascript"],
	["x.mp4", "text/vbscript"],
	["x.js", "application/javascript"],
])("%s of type %s is shown as its source", (name, type) => {
	expect(classify({ name, type })).toEqual({ kind: "text" });
});

test.each([
	["x.swf", "application/x-shockwave-flash"],
	["x.html", "multipart/x-mixed-replace"],
	["x.png", "image/png, text/html"],
	["x.png", "image/svg xml"],
	["x.png", "toString"],
	["x.constructor", "application/octet-stream"],
])("%s of type %s is not shown", (name, type) => {
	expect(classify({ name, type })).toEqual({ kind: "other" });
});
