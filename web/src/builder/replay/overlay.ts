import type { Overlay } from "@/builder/model";
import { useDrawn } from "./follower";

/** useOverlay is the run that is drawn over the canvas, if there is one. */
export function useOverlay(): Overlay | null {
	return useDrawn();
}
