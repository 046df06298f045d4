import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { EditIcon } from "@/ui/icons";
import { IconTile, isMark, markOf } from "./mark";

const image = () => document.querySelector("img");

test("the mark of an integration is its icon, loaded when it becomes visible", () => {
	const Mark = markOf("slack");
	render(<Mark size={20} />);
	expect(image()?.getAttribute("src")).toBe("/ui/v1/integrations/slack/icon");
	expect(image()?.getAttribute("loading")).toBe("lazy");
	expect(image()?.getAttribute("alt")).toBe("");
	expect(image()?.width).toBe(20);
});

test("an integration without an icon has its first letter as its mark", () => {
	const Mark = markOf("acme");
	render(<Mark aria-label="Not started" role="img" aria-hidden={undefined} />);
	fireEvent.error(screen.getByRole("img", { name: "Not started" }));
	expect(image()).toBeNull();
	expect(screen.getByRole("img", { name: "Not started" }).textContent).toBe("A");
});

test("nothing is loaded for what cannot be the id of an integration", () => {
	const Mark = markOf("../x");
	render(<Mark />);
	expect(image()).toBeNull();
});

test("an own integration has the first letter of its name as its mark, and nothing is loaded", () => {
	const Mark = markOf("x_parcels");
	render(<Mark aria-label="Step" role="img" aria-hidden={undefined} />);
	expect(image()).toBeNull();
	expect(screen.getByRole("img", { name: "Step" }).textContent).toBe("P");
});

test("a mark fills a tile, another icon has the colors of the tile", () => {
	expect(isMark(EditIcon)).toBe(false);
	render(<IconTile icon={markOf("slack")} className="bg-sunken" />);
	expect(image()?.width).toBe(32);
	render(<IconTile icon={EditIcon} className="bg-sunken" />);
	expect(document.querySelectorAll(".bg-sunken")).toHaveLength(1);
});
