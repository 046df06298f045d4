import { expect, test } from "vitest";
import { keptFiles, lostFiles, memberFor, startWith } from "./attachment";

test.each([
	["photo.jpg", [], "photo"],
	["Invoice 2026-11.pdf", [], "Invoice_2026_11"],
	["photo.png", ["photo", "photo_2"], "photo_3"],
	["7.csv", [], "file_7"],
	[".env", [], "file"],
	["写真.jpg", [], "file"],
])("%s beside %j is %s", (name, taken, want) => {
	expect(memberFor(name, taken)).toBe(want);
});

const photo = { member: "photo", id: "file_1", name: "photo.jpg", type: "image/jpeg", size: 1 };

test("a run starts with a payload and files", () => {
	expect(startWith({ a: 1 }, [])).toEqual({ payload: { a: 1 } });
	expect(startWith({ a: 1, photo: 2 }, [photo])).toEqual({ payload: { a: 1 }, files: { photo: "file_1" } });
	const kept = { member: "photo", id: "file_0" };
	expect(startWith({}, [photo], [kept, { member: "b", id: "file_3" }]).files).toEqual({ photo: "file_1", b: "file_3" });
});

test("two attached files with the same name are rejected", () => {
	expect(() => startWith({}, [photo, { ...photo, id: "file_2" }])).toThrow("Two files are named “photo”");
});

test("a payload that was used before keeps its files", () => {
	const reference = { $file: "file_1", name: "a.txt", type: "text/plain", size: 1, sha256: "a1" };
	const earlier = { payload: { "a/b": reference, looks: reference, n: 1 }, payload_files: ["/a~1b"] };
	expect(keptFiles(earlier.payload, earlier)).toEqual([{ member: "a/b", id: "file_1" }]);
	expect(keptFiles({ ...earlier.payload, "a/b": { ...reference, $file: "file_2" } }, earlier)).toEqual([]);
	expect(keptFiles({ n: 1 }, earlier)).toEqual([]);
	expect(keptFiles(earlier.payload, undefined)).toEqual([]);
});

test("files inside members of a payload that was used before are lost", () => {
	const reference = { $file: "file_1", name: "a.txt", type: "text/plain", size: 1, sha256: "a1" };
	const earlier = {
		payload: { top: reference, order: { "a/b": [reference] }, "order/a": reference },
		payload_files: ["/top", "/order/a~1b/0"],
	};
	expect(keptFiles(earlier.payload, earlier)).toEqual([{ member: "top", id: "file_1" }]);
	expect(lostFiles(earlier.payload, earlier)).toEqual(["a.txt (/order/a~1b/0)"]);
	expect(lostFiles({ ...earlier.payload, order: { "a/b": [] } }, earlier)).toEqual([]);
	expect(lostFiles(earlier.payload, undefined)).toEqual([]);
});
