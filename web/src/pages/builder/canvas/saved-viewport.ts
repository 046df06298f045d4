import type { Viewport } from "@xyflow/react";

/**
 * SavedViewport remembers the viewport from before it moved to make room for the picker,
 * so that it can be restored if nothing is picked.
 */
export class SavedViewport {
	private from: Viewport | null = null;
	private doc: unknown;

	/** Saves the viewport, unless one is already saved. */
	begin(from: Viewport, doc: unknown): void {
		if (this.from !== null) return;
		this.from = from;
		this.doc = doc;
	}

	/** The user moved the view, so it is not restored. */
	cancel(): void {
		this.from = null;
	}

	/** The viewport to restore; null if the view did not move or the document has changed. */
	end(doc: unknown): Viewport | null {
		const { from } = this;
		this.from = null;
		return doc === this.doc ? from : null;
	}
}
