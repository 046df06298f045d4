import type { ReactFlowInstance, Viewport } from "@xyflow/react";

/** The options shared by every canvas. */
export const flowOptions = {
	minZoom: 0.1,
	maxZoom: 1.5,
	nodesFocusable: false,
	edgesFocusable: false,
	deleteKeyCode: null,
	disableKeyboardA11y: true,
} as const;

export function prefersReducedMotion(): boolean {
	return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** animation returns the options for animated viewport changes. */
export function animation(): { duration: number } {
	return { duration: prefersReducedMotion() ? 0 : 180 };
}

type Zooming = Pick<ReactFlowInstance, "zoomIn" | "zoomOut" | "fitView">;

export const zoomIn = (flow: Zooming) => void flow.zoomIn(animation());
export const zoomOut = (flow: Zooming) => void flow.zoomOut(animation());
export const zoomToFit = (flow: Zooming) => void flow.fitView({ padding: 0.15, maxZoom: 1, ...animation() });

export interface Box {
	readonly x: number;
	readonly y: number;
	readonly width: number;
	readonly height: number;
}

/** Names are illegible below this zoom. */
const readable = 0.7;

export type Pane = Pick<HTMLElement, "clientWidth" | "clientHeight">;

/**
 * openingView returns the initial viewport of a canvas for editing: the whole workflow if it
 * stays legible, else the target, or the first steps below the start bar.
 */
export function openingView(host: Pane, bounds: Box, start: Box | undefined, target?: Box): Viewport {
	const { clientWidth: width, clientHeight: height } = host;
	const fitting = fittingZoom(host, bounds);
	const zoom = Math.max(fitting, readable);
	const whole = zoom === fitting;
	const centre = whole ? bounds : (target ?? start ?? bounds);
	const x = width / 2 - (centre.x + centre.width / 2) * zoom;
	if (target && !whole) return { x, y: height / 2 - (target.y + target.height / 2) * zoom, zoom };
	const top = whole ? Math.max(48, (height - bounds.height * zoom) / 3) : 48;
	return { x, y: top - bounds.y * zoom, zoom };
}

function fittingZoom({ clientWidth: width, clientHeight: height }: Pane, bounds: Box): number {
	return Math.min(1, (width - 96) / bounds.width, (height - 128) / bounds.height);
}

/** Nodes are only dots of color below this zoom. */
const recognizable = 0.15;

/**
 * fittingView returns the viewport that shows all of a graph. If its nodes would no longer be recognizable, it shows
 * the target instead, or the beginning of the graph.
 */
export function fittingView(pane: Pane, bounds: Box, target: Box): Viewport {
	const { clientWidth: width, clientHeight: height } = pane;
	const zoom = fittingZoom(pane, bounds);
	if (zoom < recognizable) return openingView(pane, bounds, target, target);
	return {
		x: width / 2 - (bounds.x + bounds.width / 2) * zoom,
		y: Math.max(48, (height - bounds.height * zoom) / 3) - bounds.y * zoom,
		zoom,
	};
}

type Moving = Pick<ReactFlowInstance, "getInternalNode" | "getViewport" | "setViewport">;

/** Scrolls just enough to show a node, and reports whether it had to. */
export function showNode(flow: Moving, host: HTMLElement, node: string, covered = 0): boolean {
	const inner = flow.getInternalNode(node);
	if (!inner) return false;
	const { x, y, zoom } = flow.getViewport();
	const at = inner.internals.positionAbsolute;
	const margin = 48;
	const left = at.x * zoom + x;
	const top = at.y * zoom + y;
	const right = left + (inner.width ?? 0) * zoom;
	const bottom = top + Math.min(inner.height ?? 0, 160) * zoom;
	const dx =
		left < margin + covered
			? margin + covered - left
			: right > host.clientWidth - margin
				? host.clientWidth - margin - right
				: 0;
	const dy =
		top < margin ? margin - top : bottom > host.clientHeight - margin ? host.clientHeight - margin - bottom : 0;
	if (dx === 0 && dy === 0) return false;
	void flow.setViewport({ x: x + dx, y: y + dy, zoom }, animation());
	return true;
}
