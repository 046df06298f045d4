import { readFileSync } from "node:fs";
import type { Browser, Locator, Page, Request } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSignedIn, shoot, type Watched } from "./browser";
import { drawn, hostile, png, recorded, type Sample, sample, scripted, wav } from "./files.data";
import { encryptedPdf, hostilePdf, paper } from "./files.pdf";
import { longTest } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/files"));
	watched.context.on("dialog", () => expect.unreachable("a script opened a dialog"));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

const wide = { width: 1280, height: 800 };
const narrow = { width: 375, height: 740 };

/** shootBoth takes screenshots at both widths. */
async function shootBoth(page: Page, name: string): Promise<void> {
	await shoot(page, name);
	await page.setViewportSize(narrow);
	await shoot(page, `${name}-narrow`);
	await page.setViewportSize(wide);
}

/** store uploads a file with the key and returns its id. */
async function store({ name, type, bytes }: Sample): Promise<string> {
	const response = await fetch(`${server.url}/v1/files?name=${encodeURIComponent(name)}`, {
		method: "POST",
		headers: { Authorization: `Bearer ${server.key}`, "Content-Type": type },
		body: new Uint8Array(bytes),
	});
	if (!response.ok) throw new Error(`upload ${name}: ${response.status} ${await response.text()}`);
	return ((await response.json()) as { id: string }).id;
}

/** harmless fails if a script of a file ran on this origin. */
async function harmless(): Promise<void> {
	const found = await watched.page.evaluate(() => ({
		marks: "owned" in window || localStorage.getItem("owned") !== null || document.cookie.includes("owned"),
		frames: window.frames.length,
		scripts: [...document.scripts].filter((one) => !one.src).length,
		links: [...document.links].filter((one) => one.protocol === "javascript:").length,
	}));
	expect(found).toEqual({ marks: false, frames: 0, scripts: 0, links: 0 });
	watched.check();
}

const dialog = () => watched.page.getByRole("dialog");

async function open(id: string): Promise<void> {
	await watched.page.goto(`/files?file=${id}`);
	await dialog().getByText("SHA-256", { exact: true }).waitFor();
}

/** showsImage waits until the image in the preview is drawn. */
async function showsImage(): Promise<void> {
	const image = dialog().locator("img");
	await image.waitFor();
	await expect.poll(() => image.evaluate((one: HTMLImageElement) => one.complete && one.naturalWidth > 0)).toBe(true);
}

async function choose(...files: Sample[]): Promise<void> {
	const chooser = watched.page.waitForEvent("filechooser");
	await watched.page.getByRole("button", { name: "Choose files" }).click();
	const chosen = files.map(({ name, type, bytes }) => ({ name, mimeType: type, buffer: bytes }));
	await (await chooser).setFiles(chosen);
}

test("files are uploaded, downloaded and deleted", async () => {
	const { page } = watched;
	await page.getByText("No files yet").waitFor();
	await shootBoth(page, "files-empty");
	await choose(sample("notes.txt", "text/plain", "hello\n"), sample("empty.txt", "text/plain", ""));
	const uploads = page.getByRole("list", { name: "Uploads" });
	await uploads.getByText("Uploaded, 6 bytes").waitFor();
	await uploads.getByText("Uploaded, 0 bytes").waitFor();
	await page.getByRole("row", { name: /notes\.txt.*6 bytes.*(tomorrow|in 23 hours|in 1 day)/ }).waitFor();

	const [download] = await Promise.all([
		page.waitForEvent("download"),
		page.getByRole("link", { name: "Download notes.txt" }).click(),
	]);
	expect(download.suggestedFilename()).toBe("notes.txt");
	expect(readFileSync(await download.path(), "utf8")).toBe("hello\n");

	await page.getByRole("button", { name: "empty.txt", exact: true }).click();
	await dialog().getByText("The file is empty.").waitFor();
	await page.keyboard.press("Escape");
	await dialog().waitFor({ state: "detached" });
	await page.getByRole("button", { name: "Delete empty.txt" }).click();
	await page.getByRole("button", { name: "Delete file" }).click();
	await page.getByRole("row", { name: /empty\.txt/ }).waitFor({ state: "detached" });
	await page.getByRole("button", { name: "Dismiss empty.txt" }).click();
	await page.getByRole("button", { name: "Dismiss notes.txt" }).click();
	await uploads.waitFor({ state: "detached" });
	watched.check();
});

longTest("an upload is paused, resumed and cancelled", async () => {
	const { page } = watched;
	const bytes = Buffer.alloc(300_000, "0123456789");
	// Requests with bytes wait, so that there is something to pause.
	const hold = () =>
		page.route("**/ui/v1/files/uploads/*", (route) => route.request().method() !== "PATCH" && route.continue());
	await hold();
	await choose(sample("large.bin", "application/octet-stream", bytes));
	await page.getByRole("progressbar", { name: "Upload of large.bin" }).waitFor();
	await page.getByRole("button", { name: "Pause large.bin" }).click();
	await page.getByText("Paused at 0 bytes of 293.0 KiB").waitFor();
	await shootBoth(page, "files-paused");
	await page.unrouteAll({ behavior: "ignoreErrors" });
	await page.getByRole("button", { name: "Resume large.bin" }).click();
	await page.getByText("Uploaded, 293.0 KiB").waitFor();
	await page.getByRole("row", { name: /large\.bin.*293\.0 KiB/ }).waitFor();
	await page.getByRole("button", { name: "Dismiss large.bin" }).click();

	await hold();
	await choose(sample("other.bin", "application/octet-stream", bytes));
	await page.getByRole("button", { name: "Cancel other.bin" }).click();
	await page.getByRole("list", { name: "Uploads" }).waitFor({ state: "detached" });
	await page.unrouteAll({ behavior: "ignoreErrors" });
	watched.check();
});

longTest("an interrupted upload continues by itself", async () => {
	const { page } = watched;
	let interrupted = 0;
	await page.route("**/ui/v1/files/uploads/*", (route) => {
		if (route.request().method() !== "PATCH" || interrupted > 0) return route.continue();
		interrupted += 1;
		return route.abort();
	});
	watched.expect("net::ERR_FAILED");
	await choose(sample("again.bin", "application/octet-stream", Buffer.alloc(100_000, 7)));
	await page.getByText("Uploaded, 97.7 KiB").waitFor();
	expect(interrupted).toBe(1);
	await page.unrouteAll({ behavior: "ignoreErrors" });
	watched.check();
});

longTest("images, audio and video are shown", async () => {
	const { page } = watched;
	const images = [
		sample("photo.png", "image/png", png(200)),
		sample("photo.jpg", "image/jpeg", await drawn(page, "image/jpeg")),
		sample("photo.webp", "image/webp", await drawn(page, "image/webp")),
		sample("dot.gif", "image/gif", Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64")),
	];
	const video = sample("clip.webm", "video/webm", await recorded(page));
	for (const image of images) {
		await open(await store(image));
		await showsImage();
		expect(await dialog().locator("img").getAttribute("src")).toMatch(/^blob:/);
		if (image.name === "photo.png") await shootBoth(page, "file-image");
	}
	const playable = async (what: string) => {
		const media = dialog().locator(what);
		await media.waitFor();
		await expect.poll(() => media.evaluate((one: HTMLMediaElement) => one.readyState)).toBeGreaterThan(0);
	};
	await open(await store(sample("tone.wav", "audio/wav", wav())));
	await playable("audio");
	await shoot(page, "file-audio");
	await open(await store(video));
	await playable("video");
	await shoot(page, "file-video");

	// Closing the preview releases the bytes.
	const url = await dialog().locator("video").getAttribute("src");
	await page.keyboard.press("Escape");
	await dialog().waitFor({ state: "detached" });
	await expect
		.poll(() =>
			page.evaluate(
				(url) =>
					new Promise((resolve) => {
						const probe = document.createElement("video");
						probe.onerror = () => resolve("gone");
						probe.onloadedmetadata = () => resolve("there");
						probe.src = url as string;
					}),
				url,
			),
		)
		.toBe("gone");
	watched.expect("ERR_FILE_NOT_FOUND");
	watched.check();
});

longTest("text, JSON, lines and CSV are shown", async () => {
	const { page } = watched;
	const content = () => dialog().getByLabel("Content", { exact: true });

	await open(
		await store(sample("data.json", "application/json", '{"id":12345678901234567890,"rate":1.10,"tags":["a"]}')),
	);
	await content().getByText('"id": 12345678901234567890').waitFor();
	expect(await content().textContent()).toContain('"rate": 1.10');
	await shootBoth(page, "file-json");
	await open(await store(sample("broken.json", "application/json", '{"id":')));
	await dialog().getByText("This is not valid JSON.").waitFor();

	const items = Array.from({ length: 250 }, (_, at) => `{"n":${at}}`);
	await open(await store(sample("list.ndjson", "application/x-ndjson", `${items.join("\n")}\n`)));
	await dialog().getByText("The first 100 of 250 lines.").waitFor();
	expect((await content().textContent())?.split("\n")).toHaveLength(100);

	const rows = Array.from({ length: 300 }, (_, at) => `${at};"Smith; ""Jo""";${at},50`);
	await open(await store(sample("people.csv", "text/csv", `id;name;amount\n${rows.join("\n")}\n`)));
	await dialog().getByText("The first 200 rows.").waitFor();
	await dialog().getByRole("columnheader", { name: "amount" }).waitFor();
	await dialog().getByRole("row", { name: '7 Smith; "Jo" 7,50', exact: true }).waitFor();
	expect(await dialog().getByRole("row").count()).toBe(201);
	await shootBoth(page, "file-csv");

	// Only the start of a large text is loaded.
	const ranges: (string | undefined)[] = [];
	page.on("request", (request) => {
		if (request.url().includes("/ui/v1/files/file_") && request.headers().accept !== "application/json")
			ranges.push(request.headers().range);
	});
	await open(await store(sample("huge.log", "text/plain", "a line of a log\n".repeat(200_000))));
	await dialog().getByText("The first 256 KiB of 3.1 MiB.").waitFor();
	expect((await content().textContent())?.length).toBe(256 << 10);
	expect(ranges).toEqual(["bytes=0-262143"]);
	await shootBoth(page, "file-text");

	await open(await store(sample("a.zip", "application/zip", "PK")));
	await dialog().getByText("There is no preview for files of this type.").waitFor();
	await open(await store(sample("binary.txt", "text/plain", "a\0b")));
	await dialog().getByText("The file contains bytes that are not text.").waitFor();
	watched.check();
});

const pdfPage = (number: number, count: number) =>
	dialog().getByRole("img", { name: `Page ${number} of ${count}`, exact: true });

/** isDrawn reports whether a page of a PDF has its red square and some black text. */
function isDrawn(page: Locator): Promise<boolean> {
	return page.evaluate((canvas: HTMLCanvasElement) => {
		const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
		let red = 0;
		let black = 0;
		for (let at = 0; at < data.length; at += 4) {
			const [r = 0, g = 0, b = 0] = [data[at], data[at + 1], data[at + 2]];
			if (r > 200 && g < 50 && b < 50) red++;
			if (r < 50 && g < 50 && b < 50) black++;
		}
		return red > 1_000 && black > 50;
	});
}

longTest("a PDF is shown page by page", async () => {
	const { page } = watched;
	const scripts: string[] = [];
	const record = (request: Request) => scripts.push(request.url().split("/").pop() ?? "");
	page.on("request", record);
	await open(await store(sample("photo.png", "image/png", png(50))));
	await showsImage();
	expect(scripts.filter((one) => one.startsWith("pdf"))).toEqual([]);

	await open(await store(paper("paper.pdf", 40)));
	await dialog().getByText("40 pages.").waitFor();
	await expect.poll(() => isDrawn(pdfPage(1, 40))).toBe(true);
	expect(scripts.filter((one) => one.startsWith("pdf")).sort()).toHaveLength(2);
	page.off("request", record);
	await shootBoth(page, "file-pdf");
	await expect.poll(() => isDrawn(pdfPage(1, 40))).toBe(true);

	// A page is as wide as there is room.
	const pages = dialog().getByRole("region", { name: "Pages of paper.pdf" });
	const [room, first] = [await pages.boundingBox(), await pdfPage(1, 40).boundingBox()];
	expect(first?.width).toBeGreaterThan((room?.width ?? 0) - 50);
	expect(await pages.evaluate((one) => one.scrollWidth <= one.clientWidth)).toBe(true);

	// The keyboard scrolls, and only what is in view is drawn.
	await pages.focus();
	await page.keyboard.press("End");
	await expect.poll(() => isDrawn(pdfPage(40, 40))).toBe(true);
	const landscape = await pdfPage(40, 40).boundingBox();
	expect((landscape?.width ?? 0) / (landscape?.height ?? 1)).toBeCloseTo(842 / 595, 1);
	await pdfPage(1, 40).waitFor({ state: "detached" });
	await expect.poll(() => dialog().locator("canvas").count()).toBeLessThan(8);
	await shoot(page, "file-pdf-end");

	// Closing the preview ends the worker.
	expect(page.workers()).toHaveLength(1);
	await page.keyboard.press("Escape");
	await dialog().waitFor({ state: "detached" });
	await expect.poll(() => page.workers().length).toBe(0);
	await harmless();
});

longTest("a PDF that cannot be shown is offered as a download", async () => {
	const { page } = watched;
	const { bytes } = paper("paper.pdf", 1);
	for (const damaged of ["%PDF-1.4", "not a PDF", bytes.subarray(0, 60)]) {
		await open(await store(sample("damaged.pdf", "application/pdf", damaged)));
		await dialog()
			.getByText(/This PDF cannot be shown/)
			.waitFor();
	}
	await shoot(page, "file-pdf-damaged");
	await open(await store(encryptedPdf));
	await dialog()
		.getByText(/This PDF is encrypted/)
		.waitFor();
	await dialog().getByRole("link", { name: "Download" }).waitFor();
	watched.check();
});

longTest("a hostile PDF executes and requests nothing", async () => {
	const { page } = watched;
	const opened = watched.context.pages().length;
	await open(await store(hostilePdf));
	const shown = pdfPage(1, 1);
	await expect.poll(() => isDrawn(shown)).toBe(true);
	const address = page.url();
	await shown.hover();
	await shown.click();
	await shown.click({ position: { x: 20, y: 20 } });
	await page.keyboard.press("Enter");
	expect(await dialog().locator("a").count()).toBe(1); // the download
	expect(await dialog().locator("input, form, iframe, embed, object").count()).toBe(0);
	expect(page.url()).toBe(address);
	expect(watched.context.pages()).toHaveLength(opened);
	await shoot(page, "file-pdf-hostile");
	await harmless();
	const [worker] = page.workers();
	expect(await worker?.evaluate(() => "owned" in globalThis)).toBe(false);
});

longTest("a run starts with files, and they cannot be deleted while it exists", async () => {
	const { page } = watched;
	const { id } = await server.call("POST", "/v1/workflows", { name: "Keep a photo" });
	const steps = [{ id: "keep", uses: "data.set", with: { values: { copy: "${{ trigger.payload.picture }}" } } }];
	await server.call("PATCH", `/v1/workflows/${id}`, { state: "active", steps });
	await page.goto("/workflows");
	await page.getByRole("button", { name: "Run Keep a photo" }).click();
	await choose(sample("holiday.png", "image/png", png(50)));
	await dialog().getByRole("textbox", { name: "Member of the payload for holiday.png" }).fill("picture");
	await shootBoth(page, "files-start");
	await dialog().getByRole("button", { name: "Run", exact: true }).click();
	await page.waitForURL(/\/runs\/run_/);
	const run = page.url().split("/runs/")[1]?.split("?")[0];
	await expect.poll(async () => (await server.call("GET", `/v1/runs/${run}`)).status).toBe("succeeded");
	const { trigger, steps: executed } = await server.call("GET", `/v1/runs/${run}`);
	expect(trigger.payload.picture).toMatchObject({ name: "holiday.png", type: "image/png" });
	expect(executed[0].output.copy).toEqual(trigger.payload.picture);

	await page.goto("/files");
	await page.getByRole("row", { name: /holiday\.png.*in use/ }).waitFor();
	await page.getByRole("button", { name: "Delete holiday.png" }).click();
	watched.expect("409");
	await dialog().getByRole("button", { name: "Delete file" }).click();
	await dialog().getByRole("alert").filter({ hasText: "Something refers to the file" }).waitFor();
	await shootBoth(page, "files-in-use");
	await dialog().getByRole("button", { name: "Cancel" }).click();

	// A draft run in the builder.
	await page.goto(`/workflows/${id}`);
	await page.getByRole("button", { name: "Run", exact: true }).click();
	await page.getByRole("link", { name: "Open run" }).waitFor();
	await choose(sample("picture.png", "image/png", png(60)));
	await page.getByRole("list", { name: "Attached files" }).getByText("picture.png").waitFor();
	await page.getByLabel("Data for the run").selectOption("empty");
	await page.getByRole("button", { name: "Remove picture.png" }).scrollIntoViewIfNeeded();
	await shootBoth(page, "files-builder");
	await page.getByLabel("Data for the run").selectOption("last");
	const [started] = await Promise.all([
		page.waitForResponse((response) => response.request().method() === "POST" && response.url().endsWith("/runs")),
		page.getByRole("button", { name: "Run the draft" }).click(),
	]);
	// The payload of the last run has a member with the same name.
	expect((await started.json()).trigger.payload).toMatchObject({ picture: { name: "picture.png" } });
	watched.check();
});

longTest("a file that does not exist is not a failure of the page", async () => {
	const { page } = watched;
	watched.expect("404");
	await page.goto("/files?file=file_01m7fcp3qae35rw9hmckwyqppc");
	await dialog().getByText("There is no such file").waitFor();
	await shootBoth(page, "file-missing");
	watched.check();
});

longTest.each(hostile)("nothing in $name is executed", async (file) => {
	const { page } = watched;
	const id = await store(file);
	await open(id);
	if (file.name === "drawing.svg") {
		await showsImage();
		expect(await dialog().locator("img").getAttribute("src")).toMatch(/^data:image\/svg\+xml;base64,/);
		await shoot(page, "file-svg");
	} else if (file.type.startsWith("image/")) {
		await dialog()
			.getByText(/The browser cannot show this file/)
			.waitFor();
	} else if (file.type === "text/csv") {
		await dialog().getByRole("cell", { name: "<script>window.owned=1</script>" }).waitFor();
		await dialog().getByRole("cell", { name: 'a;"b"' }).waitFor();
	} else if (file.name === "unknown") {
		await dialog().getByText("There is no preview for files of this type.").waitFor();
	} else {
		// Documents are shown as their source.
		await dialog().getByLabel("Content", { exact: true }).getByText("localStorage.setItem").waitFor();
		if (file.name.includes("<script>")) await shoot(page, "file-html");
	}
	expect(await dialog().getByRole("heading").textContent()).toBe(file.name.split("/").pop());
	await harmless();

	// The same file in a tab of its own: the browser saves it.
	const tab = await watched.context.newPage();
	const saved = tab.waitForEvent("download");
	await tab.goto(`/ui/v1/files/${id}`).catch(() => undefined);
	expect(readFileSync(await (await saved).path())).toEqual(file.bytes);
	await tab.close();
	await harmless();
});

test("a preview of hostile bytes cannot be opened as a document", async () => {
	const { page } = watched;
	await open(await store(sample("good.png", "image/png", Buffer.concat([png(8), Buffer.from(scripted)]))));
	await showsImage();
	const url = await dialog().locator("img").getAttribute("src");
	const [tab] = await Promise.all([
		watched.context.waitForEvent("page"),
		page.evaluate((url) => void window.open(url ?? ""), url),
	]);
	await tab.waitForLoadState();
	expect(await tab.evaluate(() => ({ type: document.contentType, owned: "owned" in window }))).toEqual({
		type: "image/png",
		owned: false,
	});
	await tab.close();
	// The browser's own page around an image has inline styles.
	watched.expect("style-src");
	await harmless();
});
