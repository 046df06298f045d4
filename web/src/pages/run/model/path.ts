// Paths in a run: "reserve" is a step, "lines[3].reserve" a step inside a round,
// "lines[3]" the round itself, and "" the whole run.

export interface StepPath {
	/** The path of the enclosing block, null at the top level. */
	readonly block: string | null;
	readonly round: number | null;
	/** The id in the definition; for a round, the id of its block. */
	readonly id: string;
}

const inRound = /^(.*)\[(\d+)\]\.([^.[\]]+)$/;
const round = /^(.*)\[(\d+)\]$/;

export function parsePath(path: string): StepPath {
	const found = inRound.exec(path);
	if (!found) return { block: null, round: null, id: path };
	return { block: found[1] as string, round: Number(found[2]), id: found[3] as string };
}

export function roundPath(block: string, index: number): string {
	return `${block}[${index}]`;
}

/** parseRound parses the path of a round. It returns undefined for any other path. */
export function parseRound(path: string): { block: string; index: number } | undefined {
	const found = round.exec(path);
	return found ? { block: found[1] as string, index: Number(found[2]) } : undefined;
}

/** ancestors returns the enclosing blocks and rounds, outermost first. */
export function ancestors(path: string): string[] {
	const out: string[] = [];
	for (let here = path; here !== ""; ) {
		const own = parseRound(here);
		const up = own ? own.block : enclosing(here);
		if (up) out.unshift(up);
		here = up;
	}
	return out;
}

function enclosing(path: string): string {
	const place = parsePath(path);
	return place.block === null || place.round === null ? "" : roundPath(place.block, place.round);
}
