import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";
import { toast } from "@/ui/toast";

// Busy machines need long timeouts.
configure({ asyncUtilTimeout: 30_000 });

// There is no layout in these tests, so elements that measure themselves get an ordinary window size.
for (const [name, size] of Object.entries({
	clientWidth: 1200,
	clientHeight: 800,
	offsetWidth: 1200,
	offsetHeight: 800,
})) {
	Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: () => size });
}

// Browsers report a new selection asynchronously, and CodeMirror relies on that, but
// happy-dom reports it synchronously. The event itself is marked, because test files share
// a document and each adds this listener.
document.addEventListener(
	"selectionchange",
	(event) => {
		if ("delayed" in event) return;
		event.stopImmediatePropagation();
		const again = Object.assign(new Event("selectionchange"), { delayed: true });
		queueMicrotask(() => document.dispatchEvent(again));
	},
	true,
);

afterEach(() => {
	cleanup();
	vi.unstubAllGlobals();
	vi.useRealTimers();
	toast.clear();
	localStorage.clear();
});
