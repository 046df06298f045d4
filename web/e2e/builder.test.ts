import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { checkAxe, checkScrolling, copied, openSignedIn, shoot, type Watched, waitForFocus, write } from "./browser";
import { longTest } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/workflows", { viewport: { width: 1440, height: 900 } }));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

interface Step {
	id: string;
	[member: string]: unknown;
}

/** Creates a workflow and opens it in the builder. */
async function opened(name: string, definition: object = {}): Promise<string> {
	const { id } = await server.call("POST", "/v1/workflows", { name });
	if (Object.keys(definition).length > 0) await server.call("PATCH", `/v1/workflows/${id}`, definition);
	await open(watched.page, id);
	return id;
}

async function open(page: Page, id: string): Promise<void> {
	await page.goto(`/workflows/${id}`);
	await page.locator('[data-surface="canvas"] .react-flow__node').first().waitFor();
	// The canvas moves to its opening view once it has been measured.
	await expect.poll(() => viewport(page)).not.toBe("translate(0px, 0px) scale(1)");
}

/** The transform of the canvas: its position and zoom. */
const viewport = (page: Page) =>
	page.locator(".react-flow__viewport").evaluate((element) => (element as HTMLElement).style.transform);

const stored = (id: string) => server.call("GET", `/v1/workflows/${id}`);
const note = (id: string, more: object = {}): Step => ({
	id,
	uses: "log.write",
	with: { message: id },
	...more,
});
const node = (page: Page, id: string) => page.locator(`[data-node="${id}"]`);

/** The fields of the settings. Once an action is added, the first empty required one gets the focus. */
const fields = (page: Page) => page.locator("aside").locator("textarea, input, .cm-content");

/** Picks an item in the picker by typing. */
async function pick(page: Page, word: string): Promise<void> {
	await page.getByRole("combobox", { name: /^Search/ }).fill(word);
	await page.getByRole("listbox", { name: "Choices" }).getByRole("option", { selected: true }).waitFor();
	await page.keyboard.press("Enter");
}

async function save(page: Page): Promise<void> {
	await page.keyboard.press("Control+s");
	await page.getByRole("button", { name: "Saved", exact: true }).waitFor();
}

test("a first workflow by mouse: add a trigger and a step, save, run", async () => {
	const { page } = watched;
	const id = await opened("By mouse");
	await page.getByRole("button", { name: "What starts this workflow?" }).click();
	await page.getByRole("option", { name: /^Schedule/ }).click();
	await page.getByRole("button", { name: "What happens first?" }).click();
	await page.getByRole("option", { name: /^Write to the log/ }).click();
	await waitForFocus(fields(page));
	await page.keyboard.type("Hello");
	await page.getByRole("button", { name: "Save", exact: true }).click();
	await page.getByRole("button", { name: "Saved", exact: true }).waitFor();
	await page.getByRole("button", { name: "Run", exact: true }).click();
	await node(page, "write").getByLabel("Succeeded").waitFor();
	const workflow = await stored(id);
	expect(workflow.triggers).toEqual([{ id: "schedule", type: "schedule", cron: "0 9 * * *" }]);
	expect(workflow.steps).toEqual([
		{ id: "write", name: "Write to the log", uses: "log.write", with: { message: "Hello" } },
	]);
	await shoot(page, "builder-first");
	watched.check();
});

longTest("the picker finds steps by the words of other products", async () => {
	const { page } = watched;
	await opened("By other words");
	await page.getByRole("button", { name: "What happens first?" }).click();
	const first = page.getByRole("listbox", { name: "Choices" }).getByRole("option").first();
	const typed = page.getByRole("combobox", { name: "Search actions" });
	const firstFor = async (words: string, title: RegExp) => {
		await typed.fill(words);
		await expect.poll(() => first.textContent(), { message: words }).toMatch(title);
	};
	for (const words of ["if", "if else", "branch", "switch", "filter"]) await firstFor(words, /^Branch/);
	for (const words of ["loop", "iterate", "parallel"]) await firstFor(words, /^For each/);
	for (const words of ["http", "request", "api"]) await firstFor(words, /^Call a URL/);
	for (const words of ["delay", "sleep", "pause"]) await firstFor(words, /^Wait/);
	for (const words of ["code", "script"]) await firstFor(words, /^Run JavaScript/);
	for (const words of ["email", "mail"]) await firstFor(words, /Gmail|Outlook|SendGrid/);
	await firstFor("merge", /^Build an object/);
	await firstFor("approve", /^Ask for approval/);
	await firstFor("slack", /Slack/);
	await typed.fill("try catch");
	await page.getByText("Every step can retry and handle its failures").waitFor();
});

longTest("each pane of the builder scrolls on its own, however long its content is", async () => {
	const { page } = watched;
	const values = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`value_${at}`, at]));
	const id = await opened("Long settings", {
		steps: [
			{ id: "first", uses: "data.set", with: { values } },
			note("last", { on_error: "continue", if: "true", timeout: "30s", retry: { max_attempts: 3 } }),
		],
	});
	for (const size of [
		{ width: 1440, height: 900 },
		{ width: 800, height: 900 },
		{ width: 390, height: 844 },
	]) {
		await page.setViewportSize(size);
		await page.goto(`/workflows/${id}?view=outline&step=last`);
		const row = page.getByRole("treeitem", { name: /last/ });
		await row.press("t"); // a click opens a sheet on narrow screens
		await page.getByRole("dialog").getByRole("button", { name: "Test step" }).click();
		await page.getByRole("tab", { name: "Available data" }).click();
		await page.getByRole("button", { name: "Expand workflow" }).click();
		await checkScrolling(page);
		if (size.width > 1024) {
			// Each section is rendered once it is open.
			for (const name of ["Runs after", "Mask"])
				await page.getByRole("button", { name: new RegExp(`^${name}`) }).click();
			await page.getByRole("button", { name: /^Mask/, expanded: true }).waitFor();
			await checkScrolling(page);
		}
		await page.goto(`/workflows/${id}?view=yaml`);
		await page.locator(".cm-scroller").waitFor();
		await checkScrolling(page);
		await checkAxe(page);
	}
	await page.setViewportSize({ width: 1440, height: 900 });
	watched.check();
});

test("letters act only while the canvas has the focus, and send nothing without a confirmation", async () => {
	const { page } = watched;
	await opened("Letters", { steps: [note("only")] });
	const picker = page.getByRole("region", { name: "Add a step" });
	const outside = page.getByRole("button", { name: "Activate", exact: true });
	await outside.focus();
	for (const key of ["a", "t", "f", "y"]) await page.keyboard.press(key);
	// What a key opens would be there by now: the canvas answers the next ones in order.
	await node(page, "only").click();
	await page.keyboard.press("t");
	const dialog = page.getByRole("dialog");
	await dialog.getByText("Test “only”?").waitFor();
	expect(await page.getByRole("tab", { name: "Test this step" }).count()).toBe(0);
	await dialog.getByRole("button", { name: "Cancel" }).click();
	await dialog.waitFor({ state: "detached" });
	expect(await picker.count()).toBe(0);
	// Beside the steps, the canvas itself gets the focus.
	await page.locator(".react-flow__pane").click({ position: { x: 60, y: 300 } });
	await page.keyboard.press("y");
	await page.locator('[data-surface="text"]').waitFor();
	await waitForFocus(page.locator('[data-surface="text"]'));
	await page.keyboard.press("y");
	await waitForFocus(page.locator('[data-surface="canvas"]'));
	await page.keyboard.press("a");
	await picker.waitFor();
	watched.check();
});

longTest("a first workflow using only the keyboard", async () => {
	const { page } = watched;
	const id = await opened("By keyboard");
	await node(page, "#trigger").focus();
	await page.keyboard.press("Enter");
	await pick(page, "webhook");
	await node(page, "@webhook").waitFor();
	await page.waitForFunction(() => document.activeElement?.closest("aside"));
	await page.keyboard.press("Escape");
	await page.waitForFunction(() => (document.activeElement as HTMLElement)?.dataset.node === "@webhook");
	await page.keyboard.press("ArrowDown");
	await page.waitForFunction(() => (document.activeElement as HTMLElement)?.dataset.node === "#step");
	await page.keyboard.press("Enter");
	await pick(page, "log");
	await waitForFocus(fields(page));
	await page.keyboard.type("Hello");
	await page.keyboard.press("Control+s");
	await page.getByRole("button", { name: "Saved", exact: true }).waitFor();
	await page.keyboard.press("Control+Enter");
	await node(page, "write").getByLabel("Succeeded").waitFor();
	await page.keyboard.press("Escape");
	await page.waitForFunction(() => (document.activeElement as HTMLElement)?.dataset.node === "write");
	// The canvas is one tab stop.
	await expect.poll(() => page.locator('[data-surface="canvas"] [tabindex="0"]').count()).toBe(1);
	expect((await stored(id)).steps).toHaveLength(1);
	watched.check();
});

longTest("inserting on an implicit edge adds one step and no needs", async () => {
	const { page } = watched;
	const id = await opened("Insert", { steps: [note("a"), note("b"), note("c")] });
	const insert = page.getByRole("button", { name: "Add a step between a and b" });
	const before = await viewport(page);
	await insert.click();
	await waitForFocus(page.getByRole("combobox", { name: /^Search/ }));
	// The canvas moves to make room for the picker, and moves back if nothing is picked.
	await expect.poll(() => viewport(page)).not.toBe(before);
	await page.keyboard.press("Escape");
	await expect.poll(() => viewport(page)).toBe(before);
	await insert.click();
	await pick(page, "log");
	await waitForFocus(fields(page));
	await page.keyboard.type("between");
	await save(page);
	const { steps } = await stored(id);
	expect(steps.map((step: Step) => step.id)).toEqual(["a", "write", "b", "c"]);
	expect(steps.filter((step: Step) => step.needs)).toEqual([]);
	watched.check();
});

longTest("an edge connects steps, a cycle is rejected, and dropping on the canvas opens the picker", async () => {
	const { page } = watched;
	const id = await opened("Lines", { steps: [note("a"), note("b"), note("c", { needs: ["a"] })] });
	const joint = (step: string, kind: "source" | "target") =>
		page.locator(`.react-flow__node[data-id="${step}"] .react-flow__handle.${kind}`);
	const drag = async (from: { x: number; y: number }, to: { x: number; y: number }) => {
		await page.mouse.move(from.x, from.y);
		await page.mouse.down();
		await page.mouse.move((from.x + to.x) / 2, (from.y + to.y) / 2, { steps: 5 });
		await page.mouse.move(to.x, to.y, { steps: 5 });
		await page.mouse.up();
	};
	const at = async (step: string, kind: "source" | "target") => {
		const box = await joint(step, kind).boundingBox();
		return { x: (box?.x ?? 0) + 0.5, y: (box?.y ?? 0) + 0.5 };
	};
	const middle = async (step: string) => {
		const box = await node(page, step).boundingBox();
		return { x: (box?.x ?? 0) + (box?.width ?? 0) / 2, y: (box?.y ?? 0) + (box?.height ?? 0) / 2 };
	};
	await node(page, "b").hover();
	await drag(await at("b", "source"), await middle("c"));
	await save(page);
	expect((await stored(id)).steps.find((step: Step) => step.id === "c").needs).toEqual(["a", "b"]);
	await node(page, "c").hover();
	await drag(await at("c", "source"), await middle("a"));
	await page.getByText("The steps would wait for each other.").first().waitFor();
	await node(page, "c").hover();
	const end = await at("c", "source");
	await drag(end, { x: end.x + 150, y: end.y + 90 });
	await page.getByRole("region", { name: "Add a step" }).waitFor();
	await page.keyboard.press("Escape");
	watched.check();
});

longTest("a step dropped on an edge moves there; dropped elsewhere it keeps its position after a reload", async () => {
	const { page } = watched;
	const id = await opened("Drag", { steps: [note("a"), note("b"), note("c")] });
	const move = async (step: string, to: { x: number; y: number }) => {
		const box = await node(page, step).boundingBox();
		await page.mouse.move((box?.x ?? 0) + 30, (box?.y ?? 0) + 20);
		await page.mouse.down();
		await page.mouse.move(to.x - 60, to.y - 30, { steps: 6 });
		await page.mouse.move(to.x, to.y, { steps: 6 });
		await page.mouse.up();
	};
	const plus = await page.getByRole("button", { name: "Add a step between a and b" }).boundingBox();
	// Dragged near its left edge, so that the center of the step ends up on the edge.
	await move("c", { x: (plus?.x ?? 0) + 16 - 90, y: (plus?.y ?? 0) + 16 - 12 });
	await page.getByRole("button", { name: "Add a step between a and c" }).waitFor();
	await save(page);
	expect((await stored(id)).steps.map((step: Step) => step.id)).toEqual(["a", "c", "b"]);
	const before = await node(page, "b").boundingBox();
	await move("b", { x: (before?.x ?? 0) + 330, y: (before?.y ?? 0) + 60 });
	await save(page);
	const { layout, version } = await stored(id);
	expect(Object.keys(layout)).toEqual(["b"]);
	const after = await place(page, "b");
	await page.reload();
	await node(page, "b").waitFor();
	await expect.poll(() => place(page, "b")).toBe(after);
	expect((await stored(id)).version).toBe(version);
	watched.check();
});

const place = (page: Page, step: string) =>
	page.locator(`.react-flow__node[data-id="${step}"]`).evaluate((element) => (element as HTMLElement).style.transform);

longTest("delete, undo, copy and paste by keyboard", async () => {
	const { page } = watched;
	const id = await opened("Keys", { steps: [note("a"), note("b"), note("c")] });
	await node(page, "b").click();
	await page.keyboard.press("Delete");
	await node(page, "b").waitFor({ state: "detached" });
	await page.getByRole("button", { name: "Add a step between a and c" }).waitFor();
	await page.keyboard.press("Control+z");
	await node(page, "b").waitFor();
	await node(page, "b").click();
	await page.keyboard.press("Control+c");
	await expect.poll(() => copied(page)).toContain("- id: b");
	await page.keyboard.press("Control+v");
	await node(page, "b_2").waitFor();
	await page.keyboard.press("F2");
	await page.getByRole("textbox", { name: "Id" }).fill("again");
	await page.getByRole("textbox", { name: "Id" }).press("Enter");
	await node(page, "again").waitFor();
	await save(page);
	expect((await stored(id)).steps.map((step: Step) => step.id)).toEqual(["a", "b", "again", "c"]);
	watched.check();
});

/** Text is validated whenever typing pauses, and what is there by then may be rejected. */
const halfTyped = /status of 400.*\/validate/;

test("YAML and canvas edit one document: comments and untouched steps stay byte for byte", async () => {
	const { page } = watched;
	const source = [
		"# Who changes this should tell the shop.",
		"name: Text",
		"steps:",
		"  - id: a   # the first",
		"    uses: log.write",
		"    with: {message: 'one'}",
		"",
		"  # then",
		"  - id: b",
		"    uses: log.write",
		'    with: {message: "two"}',
		"",
	].join("\n");
	const id = await opened("Text", { source });
	await page.getByRole("button", { name: "Add a step after b" }).click();
	await pick(page, "log");
	await waitForFocus(fields(page));
	await page.keyboard.type("three");
	await save(page);
	const after = (await stored(id)).source as string;
	expect(after.startsWith(source)).toBe(true);
	expect(after.slice(source.length)).toContain("message: three");
	// A step that is renamed keeps its comments.
	await node(page, "b").click();
	await page.locator("aside").getByRole("textbox", { name: "Name" }).fill("Second");
	await page.locator("aside").getByRole("textbox", { name: "ID" }).fill("second");
	await page.locator("aside").getByRole("textbox", { name: "ID" }).press("Enter");
	await node(page, "second").waitFor();
	await save(page);
	expect((await stored(id)).source).toBe(after.replace("- id: b\n", "- id: second\n    name: Second\n"));
	// And the other way around.
	await page.keyboard.press("Escape");
	await page.getByRole("button", { name: "YAML", exact: true }).click();
	const text = page.getByRole("textbox", { name: "The workflow as YAML" });
	watched.expect(halfTyped);
	await text.click();
	await text.press("Control+End");
	await page.keyboard.type("  - id: d\nuses: log.write\nwith: {message: four}");
	await page.getByRole("button", { name: "Canvas", exact: true }).click();
	await node(page, "d").waitFor();
	await save(page);
	expect((await stored(id)).steps.map((step: Step) => step.id)).toEqual(["a", "second", "write", "d"]);
	watched.check();
});

longTest("invalid YAML leaves the canvas unchanged and shows the position of the error", async () => {
	const { page } = watched;
	await opened("Mistake", { steps: [note("a")] });
	await page.getByRole("button", { name: "YAML", exact: true }).click();
	const text = page.getByRole("textbox", { name: "The workflow as YAML" });
	watched.expect(halfTyped);
	await text.click();
	await text.press("Control+End");
	await page.keyboard.type("  - [");
	await page.getByText(/^Line \d+, column \d+/).waitFor();
	await page.getByRole("button", { name: "Canvas", exact: true }).click();
	await page.getByText(/The YAML has an error in line/).waitFor();
	await page.getByRole("button", { name: "1 problem", exact: true }).click();
	await page.getByRole("button", { name: /^YAML line \d+/ }).click();
	await page.waitForFunction(() => document.activeElement?.matches(".cm-content"));
	await page.getByRole("button", { name: "Canvas", exact: true }).click();
	await node(page, "a").waitFor();
	await expect.poll(() => page.getByRole("button", { name: /^Add a step/ }).count()).toBe(0);
	await page.getByRole("button", { name: "Discard text" }).click();
	await page.getByRole("button", { name: "Add a step after a" }).waitFor();
	watched.check();
});

longTest("a conflicting save asks what to keep and overwrites nothing", async () => {
	const { page } = watched;
	const id = await opened("Two tabs", { steps: [note("a")] });
	watched.expect("412");
	await server.call("PATCH", `/v1/workflows/${id}`, { steps: [note("a"), note("theirs")] });
	await page.getByRole("button", { name: "Add a step after a" }).click();
	await pick(page, "log");
	await waitForFocus(fields(page));
	await page.keyboard.type("mine");
	await page.keyboard.press("Control+s");
	const dialog = page.getByRole("dialog", { name: "Someone else saved this workflow" });
	await dialog.waitFor();
	await shoot(page, "builder-conflict");
	expect((await stored(id)).steps.map((step: Step) => step.id)).toEqual(["a", "theirs"]);
	await dialog.getByRole("button", { name: "Overwrite with mine" }).click();
	await page.getByRole("button", { name: "Saved", exact: true }).waitFor();
	expect((await stored(id)).steps.map((step: Step) => step.id)).toEqual(["a", "write"]);
	watched.check();
});

longTest("unsaved edits are restored after a reload, and leaving warns", async () => {
	const { page } = watched;
	const first = await opened("One", { steps: [note("a")] });
	const other = await server.call("POST", "/v1/workflows", { name: "Another" });
	await node(page, "a").click();
	await page.keyboard.press("Control+d");
	await node(page, "a_2").waitFor();
	page.once("dialog", (dialog) => void dialog.accept());
	await page.reload();
	await page.getByText(/Unsaved edits from .* were restored/).waitFor();
	await node(page, "a_2").waitFor();
	await page.getByRole("link", { name: "All workflows" }).click();
	const dialog = page.getByRole("dialog", { name: "Leave without saving?" });
	await dialog.getByRole("button", { name: "Save and leave" }).click();
	await page.waitForURL("**/workflows");
	expect((await stored(first)).steps).toHaveLength(2);
	await open(page, other.id);
	await page.getByRole("textbox", { name: "Workflow name" }).fill("Renamed");
	await save(page);
	expect((await stored(first)).name).toBe("One");
	expect((await stored(other.id)).name).toBe("Renamed");
	watched.check();
});

longTest("dragging one of 200 steps does not re-render the others", async () => {
	const { page } = watched;
	const steps = Array.from({ length: 200 }, (_, i) =>
		note(`s${i}`, i > 3 && i % 7 === 0 ? { needs: [`s${i - 3}`, `s${i - 1}`] } : {}),
	);
	const { id } = await server.call("POST", "/v1/workflows", { name: "Large" });
	await server.call("PATCH", `/v1/workflows/${id}`, { steps });
	await page.goto("/workflows");
	await open(page, id); // with the page's chunks cached
	await page.goto("/workflows");
	const begun = Date.now();
	await open(page, id);
	await node(page, "s0").waitFor();
	console.log(`200 steps opened in ${Date.now() - begun} ms`);
	const touched = await drawnWhileDragging(page, "s1");
	expect(Object.keys(touched)).toEqual(["s1"]);
	// The arrow keys also reach steps that were outside the view.
	await page.keyboard.press("Control+z");
	await node(page, "s0").click();
	const current = () => page.evaluate(() => (document.activeElement as HTMLElement).dataset.node);
	for (let i = 1; i <= 12; i++) {
		const before = await current();
		await page.keyboard.press("ArrowDown");
		await expect.poll(current).toMatch(/^s\d+$/);
		await expect.poll(current).not.toBe(before);
	}
	expect(Number((await current())?.slice(1))).toBeGreaterThan(9);
	watched.check();
});

/** Drags a step and returns how often each node was re-rendered meanwhile. */
async function drawnWhileDragging(page: Page, step: string): Promise<Record<string, number>> {
	const box = await node(page, step).boundingBox();
	const from = { x: (box?.x ?? 0) + 20, y: (box?.y ?? 0) + 20 };
	await page.mouse.move(from.x, from.y);
	await page.mouse.down();
	await page.mouse.move(from.x + 40, from.y);
	await page.evaluate(() => {
		const touched: Record<string, number> = {};
		Object.assign(window, { touched });
		new MutationObserver((changes) => {
			for (const { target } of changes) {
				const id = (target as HTMLElement).closest<HTMLElement>(".react-flow__node")?.dataset.id;
				if (id) touched[id] = (touched[id] ?? 0) + 1;
			}
		}).observe(document.querySelector(".react-flow__nodes") as Element, {
			subtree: true,
			attributes: true,
			childList: true,
		});
	});
	const begun = Date.now();
	for (let i = 1; i <= 30; i++) await page.mouse.move(from.x + 40 + i * 4, from.y + i);
	console.log(`30 moves of a drag took ${Date.now() - begun} ms`);
	const touched = await page.evaluate(() => ({
		...(window as unknown as { touched: Record<string, number> }).touched,
	}));
	await page.mouse.up();
	return touched;
}

longTest("activating saves first, and pausing deactivates", async () => {
	const { page } = watched;
	const id = await opened("States", { steps: [note("a")] });
	await node(page, "a").click();
	await page.keyboard.press("Control+d");
	await page.getByRole("button", { name: "Activate" }).click();
	await page.getByText("Active", { exact: true }).waitFor();
	expect(await stored(id)).toMatchObject({ state: "active", version: 3 });
	await page.getByRole("button", { name: "Pause" }).click();
	await page.getByText("Paused", { exact: true }).waitFor();
	expect((await stored(id)).state).toBe("paused");
	watched.check();
});

longTest("branches: paths, what happens on an error, and steps that are left out", async () => {
	const { page } = watched;
	const aside = page.locator("aside");
	const more = async (item: string | RegExp) => {
		await page.getByRole("button", { name: "More actions", exact: true }).click();
		await page.getByRole("menuitem", { name: item }).click();
	};
	const id = await opened("Paths", { steps: [note("a"), note("b")] });
	await page.getByRole("button", { name: "Add a step between a and b" }).click();
	await pick(page, "branch");
	await node(page, "branch").waitFor();
	await node(page, "branch").getByRole("img", { name: "1 problem" }).waitFor();
	await write(aside.getByRole("textbox", { name: "Condition of path 1" }), "trigger.payload.total > 100");
	await aside.getByRole("textbox", { name: "Name of path 1" }).fill("Over 100");
	// The steps after it are on the first path; the other one is empty.
	await page.getByRole("button", { name: "Add a step between branch.over_100 and b" }).waitFor();
	await page.getByRole("button", { name: "Add a step on the path Otherwise" }).click();
	await pick(page, "log");
	await aside.getByRole("textbox", { name: "Message" }).fill("small");
	await shoot(page, "builder-branch");
	// A branch cannot be deleted under the steps on its paths.
	await node(page, "branch").click();
	await page.keyboard.press("Delete");
	await page
		.getByRole("region", { name: "Notifications" })
		.getByText(/is on a path from here and would always run/)
		.waitFor();
	await node(page, "b").click();
	await more("Add a step for when it fails");
	await pick(page, "log");
	await aside.getByRole("textbox", { name: "Message" }).fill("failed");
	await node(page, "a").click();
	await more("Disable");
	await page.keyboard.press("Control+s");
	await page.getByRole("button", { name: "Saved", exact: true }).waitFor();
	expect((await stored(id)).steps).toMatchObject([
		{ id: "a", disabled: true },
		{
			id: "branch",
			with: { paths: [{ id: "over_100", name: "Over 100", when: "trigger.payload.total > 100" }], else: "otherwise" },
		},
		{ id: "b", needs: ["branch.over_100"] },
		{ id: "write_2", needs: ["b.error"] },
		{ id: "write", needs: ["branch.otherwise"] },
	]);
	await shoot(page, "builder-error-path");
	watched.check();
});

longTest("wraps in a loop and moves into it", async () => {
	const { page } = watched;
	const id = await opened("Loops", { steps: [note("a"), note("b"), note("c")] });
	await node(page, "b").click();
	await page.getByRole("button", { name: "More actions", exact: true }).click();
	await page.getByRole("menuitem", { name: /For each/ }).click();
	await node(page, "each").waitFor();
	await node(page, "c").click();
	await page.getByRole("button", { name: "More actions", exact: true }).click();
	await page.getByRole("menuitem", { name: "Move into…" }).click();
	await page.getByRole("option", { name: /each/ }).click();
	await page.getByRole("button", { name: "Outline", exact: true }).click();
	await expect.poll(() => page.getByRole("treeitem", { level: 2 }).count()).toBe(2);
	await page.keyboard.press("Control+z");
	await page.keyboard.press("Control+z");
	await page.getByRole("button", { name: "Saved", exact: true }).waitFor();
	expect((await stored(id)).steps).toHaveLength(3);
	watched.check();
});

longTest("settings open as a sheet on narrow screens", async () => {
	const { page } = watched;
	const id = await opened("Narrow", { steps: [note("a"), note("b")] });
	try {
		// A laptop at 200 %.
		await page.setViewportSize({ width: 720, height: 450 });
		await page.getByRole("complementary", { name: "Details" }).waitFor({ state: "hidden" });
		await page.getByRole("button", { name: "Zoom to fit" }).click();
		await node(page, "b").click();
		const sheet = page.getByRole("dialog", { name: "b", exact: true });
		await sheet.getByRole("textbox", { name: "Name" }).fill("Second");
		await page.getByRole("dialog", { name: "Second" }).waitFor();
		await shoot(page, "builder-sheet");
		await page.keyboard.press("Escape");
		await page.getByRole("button", { name: "Versions" }).click();
		await page.getByRole("dialog", { name: "Versions" }).getByText("Version 2").waitFor();
		await page.keyboard.press("Escape");
		await page.setViewportSize({ width: 360, height: 740 });
		await page.getByRole("button", { name: "Outline", exact: true }).click();
		await page.getByRole("button", { name: "Add trigger" }).click();
		await pick(page, "schedule");
		await page.getByRole("dialog", { name: "schedule" }).waitFor();
		await shoot(page, "builder-sheet-phone");
		await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
		await page.keyboard.press("Escape");
		await save(page);
		expect(await stored(id)).toMatchObject({ triggers: [{ type: "schedule" }], steps: [{}, { name: "Second" }] });
	} finally {
		await page.setViewportSize({ width: 1440, height: 900 });
	}
	watched.check();
});

longTest("outline, problems and versions", async () => {
	const { page } = watched;
	const id = await opened("Views", {
		triggers: [{ id: "hook", type: "webhook" }],
		steps: [
			note("a"),
			{ id: "lines", foreach: "trigger.payload.lines", steps: [note("inner")] },
			note("last", { name: "Tell the customer that the order, with everything in it, is ready" }),
		],
	});
	await shoot(page, "builder-canvas");
	await page.getByRole("button", { name: "Outline", exact: true }).click();
	await page.getByRole("treeitem", { name: /inner/ }).click();
	await shoot(page, "builder-outline");
	await page.keyboard.press("Delete");
	await page.getByRole("treeitem", { name: /inner/ }).waitFor({ state: "detached" });
	await page.getByRole("button", { name: /^\d+ problems?$/ }).click();
	await page.getByRole("button", { name: /a loop needs at least one step/ }).waitFor();
	await shoot(page, "builder-problems");
	await page.keyboard.press("Control+z");
	await page.getByRole("button", { name: "Versions" }).click();
	await page.getByRole("button", { name: /^Version 2/ }).click();
	await page.getByText("added").first().waitFor();
	await shoot(page, "builder-versions");
	await server.call("PATCH", `/v1/workflows/${id}`, { steps: [note("a")] });
	await page.goto("/workflows");
	await open(page, id);
	await page.getByRole("button", { name: "Versions" }).click();
	await page.getByRole("button", { name: /^Version 2/ }).click();
	await page.getByRole("button", { name: "Restore this version" }).click();
	await page.getByRole("button", { name: "Restore", exact: true }).click();
	await node(page, "lines").waitFor();
	await expect.poll(async () => (await stored(id)).version).toBe(4);
	await page.getByRole("button", { name: "YAML", exact: true }).click();
	await page.getByRole("textbox", { name: "The workflow as YAML" }).waitFor();
	await shoot(page, "builder-yaml");
	watched.check();
});

longTest("an operation of a service is found, and asks for its connection", async () => {
	const { page } = watched;
	await server.call("POST", "/v1/connections", {
		name: "my-bot",
		integration: "telegram",
		auth: "api_key",
		fields: { token: `1:${"a".repeat(35)}` },
	});
	const id = await opened("Alerts");
	await page.getByRole("button", { name: "What happens first?" }).click();
	await page.getByRole("combobox", { name: "Search actions" }).fill("telegram");
	await page.getByRole("option", { name: "Send a photo Telegram" }).waitFor();
	await shoot(page, "picker-operations");
	await page.getByRole("combobox", { name: "Search actions" }).fill("send telegram message");
	await page.keyboard.press("Enter");
	await page.getByRole("combobox", { name: "Connection" }).selectOption("my-bot");
	await write(page.getByRole("textbox", { name: "Chat" }), "@news");
	await write(page.getByRole("textbox", { name: "Text" }), "Hello");
	await shoot(page, "operation-form");
	await page.keyboard.press("ControlOrMeta+S");
	await expect
		.poll(async () => (await server.call("GET", `/v1/workflows/${id}`)).steps)
		.toMatchObject([{ uses: "telegram.send_message", connection: "my-bot", with: { chat: "@news", text: "Hello" } }]);
});
