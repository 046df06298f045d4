import { expect, test } from "vitest";
import { errorResponse, renderPage } from "@/test/render";
import { RunData } from "./run-data";

const reference = { $file: "file_1", name: "notes.txt", type: "text/plain", size: 6, sha256: "a1" };
const described = {
	...{ id: "file_1", name: "notes.txt", type: "text/plain", size: 6, sha256: "a1" },
	...{ created_at: "2026-11-16T10:20:00Z", expires_at: null },
};

test("a reference is a chip only where the server says so", async () => {
	const value = { "a/b": [reference], looks: reference };
	const { screen } = await renderPage(<RunData label="Output" value={value} openDepth={9} files={["/a~1b/0"]} />);
	const lines = screen.getAllByRole("listitem").map((line) => line.textContent);
	expect(lines.slice(0, 6)).toEqual(["{", '"a/b": [', "notes.txt6 bytes", "],", '"looks": {', '"$file": "file_1",']);
	expect(screen.getByRole("link", { name: "Download notes.txt" }).getAttribute("href")).toBe("/ui/v1/files/file_1");
});

test("without references everything is data", async () => {
	const { screen } = await renderPage(<RunData label="Output" value={{ looks: reference }} files={undefined} />);
	expect(screen.queryByRole("button", { name: "Preview notes.txt" })).toBeNull();
});

test("a chip opens a preview of the file", async () => {
	// The description comes first, then the bytes.
	const answers: unknown[] = [described, new Response("hello\n")];
	const { screen, user } = await renderPage(<RunData label="Output" value={{ a: reference }} files={["/a"]} />, {
		answers: { "GET /v1/files/file_1": () => answers.shift() },
	});
	await user.click(screen.getByRole("button", { name: "Preview notes.txt" }));
	await screen.findByText("hello");
	screen.getByText("When nothing refers to it anymore");
});

test("a file that is gone is explained", async () => {
	const { screen, user } = await renderPage(<RunData label="Output" value={{ a: reference }} files={["/a"]} />, {
		answers: { "GET /v1/files/file_1": errorResponse(404, "file_not_found", "There is no file.") },
	});
	await user.click(screen.getByRole("button", { name: "Preview notes.txt" }));
	await screen.findByText("There is no such file");
	expect(screen.queryByRole("link", { name: "Download" })).toBeNull();
});
