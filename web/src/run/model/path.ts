// Names of things in a run: a step "reserve", inside a round "lines[3].reserve",
// the round itself "lines[3]". A run as a whole is "".

export interface Place {
	/** The path of the block around it, null at the top. */
	readonly block: string | null;
	readonly round: number | null;
	/** Its id in the definition; of a round, that of its block. */
	readonly id: string;
}

const inRound = /^(.*)\[(\d+)\]\.([^.[\]]+)$/;
const round = /^(.*)\[(\d+)\]$/;

export function placeOf(path: string): Place {
	const found = inRound.exec(path);
	if (!found) return { block: null, round: null, id: path };
	return { block: found[1] as string, round: Number(found[2]), id: found[3] as string };
}

export function roundPath(block: string, index: number): string {
	return `${block}[${index}]`;
}

/** roundOf is what the path of a round names, undefined for any other path. */
export function roundOf(path: string): { block: string; index: number } | undefined {
	const found = round.exec(path);
	return found ? { block: found[1] as string, index: Number(found[2]) } : undefined;
}

/** around are the blocks and rounds that something is in, outermost first. */
export function around(path: string): string[] {
	const out: string[] = [];
	for (let here = path; here !== ""; ) {
		const own = roundOf(here);
		const up = own ? own.block : enclosing(here);
		if (up) out.unshift(up);
		here = up;
	}
	return out;
}

function enclosing(path: string): string {
	const place = placeOf(path);
	return place.block === null || place.round === null ? "" : roundPath(place.block, place.round);
}
