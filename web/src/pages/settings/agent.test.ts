import { expect, test } from "vitest";
import { browserName } from "./agent";

test.each([
	[
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36",
		"Chrome on Linux",
	],
	[
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15",
		"Safari on macOS",
	],
	["Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:130.0) Gecko/20100101 Firefox/130.0", "Firefox on Windows"],
	[
		"Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140 Safari/537.36 Edg/140",
		"Edge on Windows",
	],
	["curl/8.5.0", "curl"],
	["", "Unknown browser"],
])("%s", (agent, name) => expect(browserName(agent)).toBe(name));
