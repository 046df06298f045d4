import { type Entry, resolve, upstream } from "./level";
import { pathOf, stepOf } from "./need";
import { walk } from "./tree";
import type { Definition, Step } from "./types";

export interface GraphNode {
	readonly id: string;
	readonly step: Step;
	/** The id of its block, null at the top level. */
	readonly block: string | null;
	/** The ids of all enclosing blocks, outermost first. */
	readonly path: readonly string[];
	readonly index: number;
	readonly pointer: string;
	/** The steps of its list that it runs after; unknown ones are omitted. */
	readonly needs: readonly string[];
	readonly followers: readonly string[];
	/** The length of the longest path to it, within its list. */
	readonly rank: number;
}

export interface GraphEdge {
	readonly id: string;
	readonly from: string;
	/** The path out of `from`; undefined for the step as a whole. */
	readonly path: string | undefined;
	readonly to: string;
	/** Whether it only follows from the order of the list. */
	readonly implicit: boolean;
	readonly block: string | null;
}

export interface Graph {
	/** In document order, a block before its contents. */
	readonly nodes: ReadonlyMap<string, GraphNode>;
	readonly edges: readonly GraphEdge[];
	/** Cycles, each from a step back to itself. */
	readonly cycles: readonly (readonly string[])[];
}

/** The id of the edge of a need. */
export function edgeId(need: string, to: string): string {
	return `${need}->${to}`;
}

/** Builds the graph of a definition. */
export function graph(definition: Pick<Definition, "steps">): Graph {
	const nodes = new Map<string, GraphNode>();
	const edges: GraphEdge[] = [];
	const cycles: string[][] = [];
	const levels = new Map<string | null, Level>([[null, new Level(definition.steps)]]);
	for (const spot of walk(definition.steps)) {
		const id = spot.step.id;
		const level = levels.get(spot.block);
		if (!level || nodes.has(id)) continue;
		if (spot.step.steps) levels.set(id, new Level(spot.step.steps));
		const needs = level.needs.get(id) ?? [];
		nodes.set(id, { ...spot, id, needs, followers: level.followers.get(id) ?? [], rank: level.rank(id) });
		for (const need of level.links.get(id) ?? []) {
			const ends = { id: edgeId(need, id), from: stepOf(need), path: pathOf(need), to: id };
			edges.push({ ...ends, implicit: spot.step.needs === undefined, block: spot.block });
		}
	}
	for (const level of levels.values()) cycles.push(...level.cycles);
	return { nodes, edges, cycles };
}

/** A single list of steps. */
class Level {
	/** The needs of each step as they are written, without those that lead nowhere. */
	readonly links = new Map<string, string[]>();
	/** The steps that these refer to. */
	readonly needs = new Map<string, string[]>();
	readonly followers = new Map<string, string[]>();
	readonly cycles: string[][] = [];
	private readonly ranks = new Map<string, number>();
	private readonly trail: string[] = [];

	constructor(steps: readonly Step[]) {
		const known = new Set(steps.map((step) => step.id));
		for (const { step, needs } of resolve(steps)) {
			if (this.needs.has(step.id)) continue;
			const links = [...new Set(needs)].filter((need) => known.has(stepOf(need)) && stepOf(need) !== step.id);
			const own = [...new Set(links.map(stepOf))];
			this.links.set(step.id, links);
			this.needs.set(step.id, own);
			for (const need of own) {
				this.followers.set(need, [...(this.followers.get(need) ?? []), step.id]);
			}
		}
		for (const step of steps) this.rank(step.id);
	}

	/** The rank of a step, ignoring needs that close a cycle. */
	rank(id: string): number {
		const known = this.ranks.get(id);
		if (known !== undefined) return known;
		const seen = this.trail.indexOf(id);
		if (seen >= 0) {
			this.cycles.push([...this.trail.slice(seen), id].reverse());
			return -1;
		}
		this.trail.push(id);
		const rank = Math.max(-1, ...(this.needs.get(id) ?? []).map((need) => this.rank(need))) + 1;
		this.trail.pop();
		this.ranks.set(id, rank);
		return rank;
	}
}

export function rootsOf(g: Graph, block: string | null): string[] {
	return [...g.nodes.values()].filter((node) => node.block === block && node.needs.length === 0).map((node) => node.id);
}

export function leavesOf(g: Graph, block: string | null): string[] {
	return [...g.nodes.values()]
		.filter((node) => node.block === block && node.followers.length === 0)
		.map((node) => node.id);
}

/** The steps whose results a step can use: its predecessors and those of its enclosing blocks, in document order. */
export function visible(g: Graph, id: string): string[] {
	const seen = new Set<string>();
	for (let node = g.nodes.get(id); node; node = node.block === null ? undefined : g.nodes.get(node.block)) {
		for (const before of upstream(entriesOf(g, node.block), node.id)) seen.add(before);
	}
	return [...g.nodes.keys()].filter((other) => seen.has(other));
}

function entriesOf(g: Graph, block: string | null): Entry[] {
	return [...g.nodes.values()]
		.filter((node) => node.block === block)
		.map((node) => ({ step: node.step, needs: node.needs }));
}
