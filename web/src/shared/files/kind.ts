/** Kind is how a file is shown. */
export type Kind = "image" | "svg" | "text" | "json" | "lines" | "csv" | "pdf" | "audio" | "video" | "other";

export interface Classified {
	kind: Kind;
	/** The media type to show images, audio and video with. */
	media?: string;
}

/** What is known about a file. */
export interface Described {
	name: string;
	type: string;
}

const listed = (kind: Kind, ...media: string[]): [string, Classified][] =>
	media.map((one) => [one, { kind, media: one }]);
const alias = (kind: Kind, from: string, media: string): [string, Classified] => [from, { kind, media }];

/**
 * The types that are handed to the browser as what they are. None of them can contain a
 * script that a browser executes; nothing else gets here, whatever the file says about
 * itself.
 */
const media = new Map<string, Classified>([
	...listed("image", "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"),
	alias("image", "image/jpg", "image/jpeg"),
	...listed("audio", "audio/mpeg", "audio/mp4", "audio/aac", "audio/ogg", "audio/wav", "audio/webm", "audio/flac"),
	alias("audio", "audio/mp3", "audio/mpeg"),
	alias("audio", "audio/x-wav", "audio/wav"),
	...listed("video", "video/mp4", "video/webm", "video/ogg"),
]);

/** The types that are shown as text or as an image of their own, by media type. */
const plain = new Map<string, Kind>([
	["image/svg+xml", "svg"],
	["application/pdf", "pdf"],
	["application/json", "json"],
	["text/json", "json"],
	["application/x-ndjson", "lines"],
	["application/ndjson", "lines"],
	["application/jsonl", "lines"],
	["text/csv", "csv"],
	["text/tab-separated-values", "csv"],
	...[
		"application/xml",
		"application/xhtml+xml",
		"application/javascript",
		"application/ecmascript",
		"application/x-javascript",
		"application/yaml",
		"application/x-yaml",
		"application/toml",
		"application/sql",
		"application/x-sh",
		"application/x-httpd-php",
		"message/rfc822",
	].map((one): [string, Kind] => [one, "text"]),
]);

/** What the end of a name says, for files without a telling type. */
const endings = new Map<string, string>([
	["png", "image/png"],
	["jpg", "image/jpeg"],
	["jpeg", "image/jpeg"],
	["gif", "image/gif"],
	["webp", "image/webp"],
	["avif", "image/avif"],
	["svg", "image/svg+xml"],
	["mp3", "audio/mpeg"],
	["m4a", "audio/mp4"],
	["wav", "audio/wav"],
	["flac", "audio/flac"],
	["mp4", "video/mp4"],
	["webm", "video/webm"],
	["pdf", "application/pdf"],
	["json", "application/json"],
	["ndjson", "application/x-ndjson"],
	["jsonl", "application/x-ndjson"],
	["csv", "text/csv"],
	["tsv", "text/tab-separated-values"],
	["xml", "application/xml"],
	["yaml", "application/yaml"],
	["yml", "application/yaml"],
	...["txt", "log", "md", "html", "htm", "css", "js", "ts", "sh", "sql", "toml", "ini"].map((one): [string, string] => [
		one,
		"text/plain",
	]),
]);

const untelling = new Set(["", "application/octet-stream", "binary/octet-stream", "text/plain"]);

/** classify returns how a file is shown, by its type, or by its name if the type says nothing. */
export function classify({ name, type }: Described): Classified {
	const [essence = ""] = type.toLowerCase().split(";");
	const stated = essence.trim();
	const ending = name.toLowerCase().split(".").slice(1).pop() ?? "";
	const known = untelling.has(stated) ? (endings.get(ending) ?? stated) : stated;
	const shown = media.get(known);
	if (shown) return shown;
	const kind = plain.get(known);
	if (kind) return { kind };
	if (known.endsWith("+json")) return { kind: "json" };
	// HTML and every other document is shown as its source.
	if (known.startsWith("text/") || known.endsWith("+xml") || known.endsWith("+yaml")) return { kind: "text" };
	return { kind: "other" };
}
