import type { Browser, Request } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { openPage, openSignedIn, shoot, type Watched, waitForFocus } from "./browser";
import { longTest as test } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn());
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

const paths = [
	"/workflows",
	"/runs",
	"/approvals",
	"/templates",
	"/keys",
	"/webhooks",
	"/secrets",
	"/settings",
	"/settings/members",
	"/settings/usage",
	"/settings/audit",
	"/settings/account",
	"/reference",
];

test.each(paths)("%s opens by URL in both themes without errors", async (path) => {
	const { page } = watched;
	await page.goto(path);
	await page.getByRole("heading", { level: 1 }).waitFor();
	await shoot(page, path.slice(1).replaceAll("/", "-"));
	watched.check();
});

test("the first page loads no more than 250 kB of script", async () => {
	const fresh = await openPage(browser, server, { storageState: await watched.context.storageState() });
	const scripts: Request[] = [];
	fresh.page.on("request", (request) => {
		if (new URL(request.url()).pathname.endsWith(".js")) scripts.push(request);
	});
	await fresh.page.goto("/workflows");
	await fresh.page.getByRole("heading", { level: 1 }).waitFor();
	expect(scripts.length).toBeGreaterThan(2);
	const sizes = await Promise.all(scripts.map((request) => request.sizes()));
	expect(sizes.reduce((sum, size) => sum + size.responseBodySize, 0)).toBeLessThanOrEqual(250_000);
	await fresh.close();
});

test.each(["/workflows", "/runs", "/approvals"])("%s fits a narrow screen", async (path) => {
	const { page } = watched;
	await page.setViewportSize({ width: 360, height: 740 });
	await page.goto(path);
	await page.getByRole("heading", { level: 1 }).waitFor();
	const wide = await page.evaluate(
		() =>
			document.documentElement.scrollWidth > innerWidth ||
			(document.querySelector("main")?.scrollWidth ?? 0) > innerWidth,
	);
	expect(wide).toBe(false);
	await shoot(page, `${path.slice(1)}-narrow`);
	await page.getByRole("button", { name: "Navigation" }).click();
	await page.getByRole("dialog").getByRole("link", { name: "Approvals" }).click();
	await page.waitForURL("**/approvals");
	await page.setViewportSize({ width: 1280, height: 800 });
	watched.check();
});

test.each([
	["reference", "/reference"],
	["reference-operation", "/reference?operation=search"],
])("%s renders its markup at any width", async (name, path) => {
	const { page } = watched;
	for (const width of [360, 1280]) {
		await page.setViewportSize({ width, height: 900 });
		await page.goto(path);
		await page.locator("main article").waitFor();
		const text = (await page.locator("main article").textContent()) ?? "";
		expect(text).not.toMatch(/## |```|\|---|\*\*/);
		const wide = await page.evaluate(() =>
			Math.max(document.documentElement.scrollWidth, document.querySelector("main")?.scrollWidth ?? 0),
		);
		expect(wide).toBeLessThanOrEqual(width);
		await page.locator("main article").scrollIntoViewIfNeeded();
		// axe is slow on the whole document, and has already checked it above.
		if (name !== "reference") await shoot(page, `${name}-${width}`);
	}
	await page.setViewportSize({ width: 1280, height: 800 });
	watched.check();
});

test("the palette opens a page using only the keyboard", async () => {
	const { page } = watched;
	await page.goto("/workflows");
	await page.getByRole("heading", { level: 1 }).waitFor();
	await page.keyboard.press("Control+k");
	await waitForFocus(page.getByRole("combobox"));
	await shoot(page, "palette");
	await page.keyboard.type("webh");
	await page.keyboard.press("Enter");
	await page.waitForURL("**/webhooks");
	watched.check();
});

test("? lists the shortcuts, and they work", async () => {
	const { page } = watched;
	await page.goto("/workflows");
	await page.getByRole("heading", { level: 1 }).waitFor();
	await page.keyboard.press("?");
	await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
	await shoot(page, "shortcuts");
	await page.keyboard.press("Escape");
	await page.getByRole("dialog").waitFor({ state: "detached" });
	// Without waiting in between: the keys of a sequence belong together.
	await Promise.all([page.keyboard.press("g"), page.keyboard.press("a")]);
	await page.waitForURL("**/approvals");
	await page.goBack();
	await page.waitForURL("**/workflows");
	watched.check();
});

test("the theme follows the system until the user chooses one", async () => {
	const { page } = watched;
	const theme = (name: string) => page.locator(`html[data-theme=${name}]`).waitFor();
	await page.emulateMedia({ colorScheme: "dark" });
	await page.goto("/workflows");
	await theme("dark");
	await page.emulateMedia({ colorScheme: "light" });
	await theme("light");
	await page.getByRole("button", { name: /Ada/ }).click();
	await page.getByRole("menuitem", { name: "Dark" }).click();
	await theme("dark");
	await page.reload();
	await theme("dark");
	await page.getByRole("button", { name: /Ada/ }).click();
	await page.getByRole("menuitem", { name: "System" }).click();
	await theme("light");
	watched.check();
});

test("an unknown URL shows the not found page", async () => {
	const { page } = watched;
	await page.goto("/nowhere/at/all");
	await page.getByText("Page not found").waitFor();
	await shoot(page, "nowhere");
	watched.check();
});

test("a seventh tab loads while six live tabs are open", async () => {
	const pages = await Promise.all(
		Array.from({ length: 6 }, async () => {
			const tab = await watched.context.newPage();
			await tab.goto("/runs");
			await tab.getByRole("heading", { level: 1 }).waitFor();
			return tab;
		}),
	);
	const { page } = watched;
	await page.goto("/approvals");
	await page.getByRole("heading", { level: 1, name: "Approvals" }).waitFor();
	for (const tab of pages) await tab.close();
	watched.check();
});

test("a notice appears while the stream is lost", async () => {
	const { page } = watched;
	watched.expect(/events\/stream|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED/);
	const connected = page.waitForResponse(/events\/stream/);
	await page.goto("/runs");
	await page.getByRole("heading", { level: 1 }).waitFor();
	await connected;
	await server.stop();
	await page.getByText(/Live updates stopped at \d\d:\d\d\. Reconnecting…/).waitFor();
	await shoot(page, "stream-lost");
	await server.start();
	await page.getByText(/Live updates stopped/).waitFor({ state: "detached", timeout: 60_000 });
});

test("failed data is loaded when the server is back", async () => {
	const { page } = watched;
	watched.expect(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|events\/stream/);
	// The browser caches the script of the first page, but not its data.
	for (const path of ["/webhooks", "/workflows"]) {
		await page.goto(path);
		await page.getByRole("heading", { level: 1 }).waitFor();
	}
	await server.stop();
	await page.getByRole("navigation").getByRole("link", { name: "Webhooks" }).click();
	await page.getByText("The server could not be reached.").waitFor();
	await shoot(page, "server-away");
	await server.start();
	await page.getByText("No webhooks yet").waitFor({ timeout: 60_000 });
	await page.getByText("The server could not be reached.").waitFor({ state: "detached" });
	watched.check();
});

test("a page whose chunk failed to load appears when the server is back", async () => {
	const { page } = watched;
	watched.expect(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|events\/stream|Failed to (fetch|load)|preload/);
	await page.goto("/workflows");
	await page.getByRole("heading", { level: 1 }).waitFor();
	await server.stop();
	await page.getByRole("navigation").getByRole("link", { name: "API reference" }).click();
	await page.getByText("The server could not be reached.").waitFor();
	await server.start();
	await page.getByRole("heading", { level: 1, name: "API reference" }).waitFor({ timeout: 60_000 });
	watched.check();
});
