import type { Overlay } from "@/builder/model";

/** useOverlay is the run that is drawn over the canvas, if there is one. */
export function useOverlay(): Overlay | null {
	return null;
}
