import { prefersReducedMotion } from "@/shared/canvas/viewport";
import type { CanvasNode } from "./build";

const duration = 180;
/** With more moving nodes than this there is no animation, because it would be slow. */
const maxMoving = 120;

/**
 * Animates nodes to their new positions. Each frame gets the nodes to draw; the last one
 * gets `to` itself. The returned function cancels the animation.
 */
export function animateNodes(
	from: readonly CanvasNode[],
	to: readonly CanvasNode[],
	frame: (nodes: CanvasNode[]) => void,
): () => void {
	const before = new Map(from.map((node) => [node.id, node]));
	const moving = to.filter((node) => {
		const old = before.get(node.id);
		return old && old.parentId === node.parentId && hasMoved(old, node);
	});
	if (moving.length === 0 || moving.length > maxMoving || prefersReducedMotion()) {
		frame([...to]);
		return () => {};
	}
	const ids = new Set(moving.map((node) => node.id));
	const begun = performance.now();
	const at = (part: number) =>
		to.map((node) => {
			const old = before.get(node.id);
			if (!old || !ids.has(node.id)) return node;
			const x = old.position.x + (node.position.x - old.position.x) * part;
			const y = old.position.y + (node.position.y - old.position.y) * part;
			return { ...node, position: { x, y } };
		});
	frame(at(0));
	let next = requestAnimationFrame(function step(now) {
		const part = Math.min(1, (now - begun) / duration);
		if (part >= 1) {
			frame([...to]);
			return;
		}
		frame(at(1 - (1 - part) ** 3));
		next = requestAnimationFrame(step);
	});
	return () => cancelAnimationFrame(next);
}

function hasMoved(a: CanvasNode, b: CanvasNode): boolean {
	return a.position.x !== b.position.x || a.position.y !== b.position.y;
}
