import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openPage, openSignedIn, shoot, type Watched } from "./browser";
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

test.each(paths)("%s opens by its address, in both themes, without a complaint", async (path) => {
	const { page } = watched;
	await page.goto(path);
	await page.getByRole("heading", { level: 1 }).waitFor();
	await shoot(page, path.slice(1).replaceAll("/", "-"));
	watched.check();
});

test("the first page loads no more than 250 kB of script", async () => {
	const fresh = await openPage(browser, server, { storageState: await watched.context.storageState() });
	const sizes = new Map<string, Promise<number>>();
	fresh.page.on("requestfinished", (request) => {
		const { pathname } = new URL(request.url());
		if (pathname.endsWith(".js"))
			sizes.set(
				pathname,
				request.sizes().then((size) => size.responseBodySize),
			);
	});
	await fresh.page.goto("/workflows");
	await fresh.page.getByRole("heading", { level: 1 }).waitFor();
	const list = await Promise.all(sizes.values());
	expect(list.length).toBeGreaterThan(2);
	expect(list.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(250_000);
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

test("the palette goes to a page by keyboard alone", async () => {
	const { page } = watched;
	await page.goto("/workflows");
	await page.getByRole("heading", { level: 1 }).waitFor();
	await page.keyboard.press("Control+k");
	await page.getByRole("combobox").waitFor();
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
	await page.keyboard.press("g");
	await page.keyboard.press("a");
	await page.waitForURL("**/approvals");
	await page.goBack();
	await page.waitForURL("**/workflows");
	watched.check();
});

test("the theme follows the system until somebody chooses", async () => {
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
	await page.getByRole("menuitem", { name: "Like the system" }).click();
	await theme("light");
	watched.check();
});

test("an address that nobody has is said to be one", async () => {
	const { page } = watched;
	await page.goto("/nowhere/at/all");
	await page.getByText("There is nothing at this address").waitFor();
	await shoot(page, "nowhere");
	watched.check();
});

test("with six live tabs open a seventh loads", async () => {
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

test("a lost stream is told, and so is its return by silence", async () => {
	const { page } = watched;
	watched.expect(/events\/stream|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED/);
	await page.goto("/runs");
	await page.getByRole("heading", { level: 1 }).waitFor();
	await page.waitForTimeout(500);
	await server.stop();
	await page.getByText(/Live updates stopped at \d\d:\d\d\. Reconnecting…/).waitFor();
	await shoot(page, "stream-lost");
	await server.start();
	await page.getByText(/Live updates stopped/).waitFor({ state: "detached", timeout: 45_000 });
});
