import { render } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { handleKeyDown, useShortcut } from "./keys";

function Shortcut({ run }: { run: () => void }) {
	useShortcut("G W", "Workflows", run);
	return null;
}

/** press handles a key that was pressed at the given time. */
function press(key: string, timeStamp: number): void {
	const event = new KeyboardEvent("keydown", { key });
	Object.defineProperty(event, "timeStamp", { value: timeStamp });
	handleKeyDown(event);
}

it("a sequence depends on when its keys were pressed, not on when the page handles them", () => {
	const run = vi.fn();
	render(<Shortcut run={run} />);
	vi.useFakeTimers();
	press("g", 1_000);
	vi.advanceTimersByTime(5_000);
	press("w", 1_300);
	vi.useRealTimers();
	expect(run).toHaveBeenCalledOnce();
	press("g", 10_000);
	press("w", 13_000);
	expect(run).toHaveBeenCalledOnce();
});
