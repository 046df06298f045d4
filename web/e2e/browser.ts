import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import {
	type Browser,
	type BrowserContext,
	type BrowserContextOptions,
	chromium,
	type Locator,
	type Page,
} from "playwright-core";
import { longLane } from "./lane";
import { type Server, startServer } from "./server";

const flags = [
	"no-sandbox",
	"disable-gpu",
	"disable-quic",
	"no-first-run",
	"disable-background-networking",
	"disable-component-update",
	"disable-sync",
];

export const owner = { name: "Ada Lovelace", email: "ada@example.com", password: "correct horse battery" };

export type Theme = "light" | "dark";

export async function openBrowser(): Promise<Browser> {
	return chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		headless: true,
		args: flags.map((flag) => `--${flag}`),
	});
}

/** Watched is a page that records its errors. */
export interface Watched {
	page: Page;
	context: BrowserContext;
	/** Marks errors containing this text as expected, such as a rejected request. */
	expect: (text: string | RegExp) => void;
	/** Fails if there were unexpected errors, policy violations or requests to other origins. */
	check: () => void;
	close: () => Promise<void>;
}

/** openPage opens a page and records its errors, policy violations and requests to other origins. */
export async function openPage(
	browser: Browser,
	server: Server,
	options: BrowserContextOptions = {},
): Promise<Watched> {
	const context = await browser.newContext({
		baseURL: server.url,
		viewport: { width: 1280, height: 800 },
		reducedMotion: "reduce",
		...options,
	});
	await context.grantPermissions(["clipboard-read", "clipboard-write"]);
	const wrong: string[] = [];
	const expected: (string | RegExp)[] = [];
	await context.exposeFunction("violated", (text: string) => wrong.push(`policy: ${text}`));
	await context.addInitScript(() => {
		addEventListener("securitypolicyviolation", (event) => {
			(window as unknown as { violated: (text: string) => void }).violated(
				`${event.violatedDirective} ${event.blockedURI} ${event.sample}`,
			);
		});
	});
	const watch = (page: Page) => {
		page.on(
			"console",
			(message) => message.type() === "error" && wrong.push(`console: ${message.text()} (${message.location().url})`),
		);
		page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
		page.on("request", (request) => {
			const { origin, protocol } = new URL(request.url());
			if (protocol !== "data:" && protocol !== "blob:" && origin !== server.url)
				wrong.push(`request: ${request.url()}`);
		});
	};
	context.on("page", watch);
	context.on("page", slowDown);
	context.setDefaultTimeout(60_000); // a busy machine does not fail a journey
	const page = await context.newPage();
	return {
		page,
		context,
		expect: (text) => expected.push(text),
		check: () => {
			const left = wrong.filter(
				(one) => !expected.some((text) => (typeof text === "string" ? one.includes(text) : text.test(one))),
			);
			wrong.length = 0;
			if (left.length > 0) throw new Error(`the page reported:\n${left.join("\n")}`);
		},
		close: () => context.close(),
	};
}

const slowdown = Number(process.env.STEPMILL_E2E_SLOWDOWN ?? 1);

/** slowDown makes the scripts of a page run as many times slower as STEPMILL_E2E_SLOWDOWN says. */
async function slowDown(page: Page): Promise<void> {
	if (slowdown <= 1) return;
	try {
		const session = await page.context().newCDPSession(page);
		await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
	} catch (thrown) {
		if (!page.isClosed()) throw thrown; // a window may close before
	}
}

/** signIn signs the owner in, creating the account first if the server is new. */
export async function signIn(watched: Watched, server: Server, next = "/workflows"): Promise<void> {
	const request = watched.context.request;
	const token = new URL(server.welcome || server.url).hash.replace("#token=", "");
	const response = token
		? await request.post("/ui/v1/welcome", { data: { token, ...owner } })
		: await request.post("/ui/v1/session", { data: { email: owner.email, password: owner.password } });
	if (!response.ok()) throw new Error(`sign in: ${response.status()} ${await response.text()}`);
	server.welcome = "";
	await watched.page.goto(next);
}

/** write replaces the text of an editor in one edit, which is one step to undo. */
export async function write(editor: Locator, text: string): Promise<void> {
	await editor.click();
	await editor.press("ControlOrMeta+A");
	await editor.page().keyboard.insertText(text);
}

/** waitForFocus waits until an element has the focus, and key presses reach it. */
export async function waitForFocus(element: Locator): Promise<void> {
	await element.and(element.page().locator(":focus")).waitFor();
}

/** copied returns the text on the clipboard. */
export function copied(page: Page): Promise<string> {
	return page.evaluate(() => navigator.clipboard.readText());
}

/** openSignedIn starts a server and opens a page with its owner signed in. */
export async function openSignedIn(
	next?: string,
	options?: BrowserContextOptions,
): Promise<{ server: Server; browser: Browser; watched: Watched }> {
	const server = await startServer();
	const browser = await openBrowser();
	const watched = await openPage(browser, server, options);
	await signIn(watched, server, next);
	return { server, browser, watched };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Findings that axe does not call serious, but that leave people who listen to a page without names. */
const alsoBad = ["landmark-unique", "empty-table-header"];

/** checkAxe fails on serious or critical axe findings, and on a few others. */
export async function checkAxe(page: Page, within?: string): Promise<void> {
	// Evaluated through the debugger, because the content security policy blocks injected scripts.
	await page.evaluate(axe);
	const found = await page.evaluate(async (selector) => {
		// biome-ignore lint/suspicious/noExplicitAny: axe brings no types to the page
		const run = await (window as any).axe.run(selector ?? document, { resultTypes: ["violations"] });
		return (
			run.violations as {
				id: string;
				impact: string;
				help: string;
				nodes: { html: string; failureSummary: string }[];
			}[]
		).map((one) => ({
			id: one.id,
			impact: one.impact,
			help: one.help,
			nodes: one.nodes.map((node) => `${node.html.slice(0, 200)}\n    ${node.failureSummary.replaceAll("\n", " ")}`),
		}));
	}, within);
	const bad = found.filter(({ id, impact }) => impact === "serious" || impact === "critical" || alsoBad.includes(id));
	if (bad.length > 0) {
		throw new Error(
			`axe at ${page.url()}:\n${bad.map((one) => `${one.id} (${one.impact}): ${one.help}\n  ${one.nodes.join("\n  ")}`).join("\n")}`,
		);
	}
}

/** checkScrolling fails if the page itself scrolls, a tab bar does so vertically, or one scrolling pane is inside another. */
export async function checkScrolling(page: Page): Promise<void> {
	const wrong = await page.evaluate(() => {
		const scrolls = (element: Element) =>
			/auto|scroll/.test(getComputedStyle(element).overflowY) && element.scrollHeight > element.clientHeight;
		const nameOf = (element: Element) => `${element.tagName}.${element.className}`;
		const { scrollHeight, scrollWidth } = document.documentElement;
		const out = scrollHeight > innerHeight || scrollWidth > innerWidth ? ["the page scrolls"] : [];
		for (const element of document.querySelectorAll("body *")) {
			// A text field scrolls its own text.
			if (!scrolls(element) || element.matches("textarea, .cm-scroller")) continue;
			if (element.matches("[role=tablist]")) out.push(`a tab bar scrolls: ${nameOf(element)}`);
			for (let outer = element.parentElement; outer; outer = outer.parentElement)
				if (scrolls(outer)) out.push(`${nameOf(element)} is inside ${nameOf(outer)}`);
		}
		return out;
	});
	if (wrong.length > 0) throw new Error(`${page.url()}:\n${wrong.join("\n")}`);
}

const shots = fileURLToPath(new URL("./shots/", import.meta.url));

/**
 * shoot takes screenshots of a page in both themes, and checks both with axe. `make test` only
 * checks the theme that is shown: drawing pages costs more than everything else in a journey.
 */
export async function shoot(page: Page, name: string): Promise<void> {
	if (!longLane) return checkAxe(page);
	for (const theme of ["light", "dark"] as Theme[]) {
		await page.emulateMedia({ colorScheme: theme });
		await page.locator(`html[data-theme=${theme}]`).waitFor();
		await page.evaluate(() => document.fonts.ready);
		await page.screenshot({ path: `${shots}${name}-${theme}.png` });
		await checkAxe(page);
	}
	await page.emulateMedia({ colorScheme: "light" });
}
