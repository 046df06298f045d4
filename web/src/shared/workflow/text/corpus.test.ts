import { isUtf8 } from "node:buffer";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readYaml } from "./yaml";

// The server's corpus, so that both parsers agree.
const corpus = fileURLToPath(new URL("../../../../../internal/strictyaml/testdata/corpus/", import.meta.url));
const files = (folder: string) => readdirSync(corpus + folder).filter((name) => name.endsWith(".yaml"));

describe("accepted", () => {
	it.each(files("accepted"))("%s", (name) => {
		const read = readYaml(readFileSync(`${corpus}accepted/${name}`, "utf8"));
		const wanted: unknown = JSON.parse(readFileSync(`${corpus}accepted/${name.replace(".yaml", ".json")}`, "utf8"));
		expect("error" in read ? read.error : read.value).toEqual(wanted);
	});
});

describe("refused", () => {
	it.each(files("refused"))("%s", (name) => {
		const bytes = readFileSync(`${corpus}refused/${name}`);
		if (!isUtf8(bytes)) return;
		const read = readYaml(bytes.toString("utf8"));
		expect("error" in read).toBe(true);
	});
});
