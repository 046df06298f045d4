import { render, waitFor } from "@testing-library/react";
import { useRef } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { useFieldFocus } from "./focus";

afterEach(() => void vi.useRealTimers());

/** A panel whose field appears once it has loaded. */
function Panel({ loaded }: { loaded: boolean }) {
	const root = useRef<HTMLDivElement>(null);
	useFieldFocus(root, "/with/message", 1);
	return (
		<div ref={root}>
			{loaded && (
				<p data-pointer="/with/message">
					<textarea />
				</p>
			)}
		</div>
	);
}

it("focuses a field however long it takes to load", async () => {
	vi.useFakeTimers();
	const { container, rerender } = render(<Panel loaded={false} />);
	vi.advanceTimersByTime(60_000);
	vi.useRealTimers();
	rerender(<Panel loaded />);
	await waitFor(() => expect(document.activeElement).toBe(container.querySelector("textarea")));
});

it("leaves the focus where it is once the user has clicked", async () => {
	const { container, rerender } = render(<Panel loaded={false} />);
	document.body.dispatchEvent(new Event("pointerdown", { bubbles: true }));
	rerender(<Panel loaded />);
	await new Promise((resolve) => setTimeout(resolve));
	expect(container.querySelector("textarea")).not.toBeNull();
	expect(document.activeElement).toBe(document.body);
});
