import type { CanvasNode } from "./build";

const length = 180;
/** Beyond this many moving nodes they jump: a slow animation is worse than none. */
const most = 120;

export function stillness(): boolean {
	return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/**
 * Moves nodes from where they are to where they should be. Each frame gives the
 * list of nodes to draw; the last one is `to` itself. It ends early with what it returns.
 */
export function glide(
	from: readonly CanvasNode[],
	to: readonly CanvasNode[],
	frame: (nodes: CanvasNode[]) => void,
): () => void {
	const before = new Map(from.map((node) => [node.id, node]));
	const moving = to.filter((node) => {
		const old = before.get(node.id);
		return old && old.parentId === node.parentId && apart(old, node);
	});
	if (moving.length === 0 || moving.length > most || stillness()) {
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
		const part = Math.min(1, (now - begun) / length);
		if (part >= 1) {
			frame([...to]);
			return;
		}
		frame(at(1 - (1 - part) ** 3));
		next = requestAnimationFrame(step);
	});
	return () => cancelAnimationFrame(next);
}

function apart(a: CanvasNode, b: CanvasNode): boolean {
	return a.position.x !== b.position.x || a.position.y !== b.position.y;
}
