import { expect, it } from "vitest";
import { SavedViewport } from "./saved-viewport";

const home = { x: 10, y: 20, zoom: 1 };
const doc = {};

it("restores the first viewport once", () => {
	const saved = new SavedViewport();
	saved.begin(home, doc);
	saved.begin({ x: 300, y: 20, zoom: 1 }, doc);
	expect(saved.end(doc)).toEqual(home);
	expect(saved.end(doc)).toBeNull();
});

it("restores nothing if the document changed or the user moved the view", () => {
	const saved = new SavedViewport();
	saved.begin(home, doc);
	expect(saved.end({})).toBeNull();
	saved.begin(home, doc);
	saved.cancel();
	expect(saved.end(doc)).toBeNull();
});
