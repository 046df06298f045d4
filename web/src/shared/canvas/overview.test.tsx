import { ReactFlow } from "@xyflow/react";
import { afterEach, describe, expect, it } from "vitest";
import { renderPage } from "@/test/render";
import { isLarge } from "./large";
import { Overview } from "./overview";

afterEach(() => localStorage.clear());

function Drawn() {
	const nodes = Array.from({ length: 31 }, (_, at) => ({ id: `n${at}`, position: { x: 0, y: at * 100 }, data: {} }));
	return (
		<ReactFlow nodes={nodes}>
			<Overview nodes={nodes} ariaLabel="Minimap" />
		</ReactFlow>
	);
}

describe("the minimap", () => {
	it("can be closed, which this browser remembers, and shown again", async () => {
		const first = await renderPage(<Drawn />);
		await first.user.click(await first.screen.findByRole("button", { name: "Close the minimap" }));
		expect(first.screen.queryByLabelText("Minimap")).toBeNull();
		first.unmount();
		const second = await renderPage(<Drawn />);
		const show = await second.screen.findByRole("button", { name: "Show the minimap" });
		expect(second.screen.queryByLabelText("Minimap")).toBeNull();
		await second.user.click(show);
		expect(second.screen.getByLabelText("Minimap")).toBeDefined();
	});

	it("is for many steps at the top level", () => {
		const top = Array.from({ length: 30 }, () => ({}));
		const inner = Array.from({ length: 50 }, () => ({ parentId: "loop" }));
		expect(isLarge([...top, ...inner])).toBe(false);
		expect(isLarge([...top, {}])).toBe(true);
	});
});
