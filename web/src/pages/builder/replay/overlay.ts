import type { Overlay } from "@/shared/workflow/model";
import { useDrawn } from "./follower";

/** useOverlay returns the run shown on the canvas, if any. */
export function useOverlay(): Overlay | null {
	return useDrawn();
}
