import { type Doc, isBlock, title, walk } from "@/shared/workflow/model";

export interface Row {
	/** The node: a step, or a trigger by `@id`. */
	readonly node: string;
	readonly name: string;
	readonly detail: string;
	/** The key of its icon. */
	readonly icon: string;
	readonly trigger: boolean;
	readonly depth: number;
	/** Whether it is a loop, and whether it is expanded. */
	readonly block: boolean;
	readonly open: boolean;
	/** The enclosing loop. */
	readonly parent: string | null;
	readonly position: number;
	readonly siblings: number;
}

export interface Words {
	name(type: string): string;
	trigger(trigger: Doc["triggers"][number]): string;
	frame(step: Doc["steps"][number]): string;
}

/** The rows of the outline from top to bottom, without the contents of collapsed loops. */
export function rowsOf(doc: Doc, closed: ReadonlySet<string>, words: Words): Row[] {
	const triggers = doc.triggers.map(
		(trigger, index): Row => ({
			node: `@${trigger.id}`,
			name: words.name(trigger.type),
			detail: words.trigger(trigger),
			icon: trigger.type,
			trigger: true,
			depth: 0,
			block: false,
			open: false,
			parent: null,
			position: index + 1,
			siblings: doc.triggers.length + doc.steps.length,
		}),
	);
	const steps = [...walk(doc.steps)]
		.filter(({ path }) => !path.some((id) => closed.has(id)))
		.map(({ step, path, block, index }): Row => {
			const list = block === null ? doc.steps : undefined;
			return {
				node: step.id,
				name: title(step),
				detail: isBlock(step) ? words.frame(step) : (step.uses ?? "Choose an action"),
				icon: step.uses ?? (step.repeat ? "repeat" : "foreach"),
				trigger: false,
				depth: path.length,
				block: isBlock(step),
				open: !closed.has(step.id),
				parent: block,
				position: index + 1 + (list ? doc.triggers.length : 0),
				siblings: list ? doc.triggers.length + doc.steps.length : 0,
			};
		});
	const counts = new Map<string, number>();
	for (const row of steps) if (row.parent !== null) counts.set(row.parent, (counts.get(row.parent) ?? 0) + 1);
	return [
		...triggers,
		...steps.map((row) => (row.parent === null ? row : { ...row, siblings: counts.get(row.parent) ?? 1 })),
	];
}

/** The effect of an arrow key in the tree. */
export function treeMove(
	rows: readonly Row[],
	from: string | undefined,
	key: string,
): { go?: string; open?: string; close?: string } {
	const at = rows.findIndex((row) => row.node === from);
	const row = rows[at];
	const to = (next: Row | undefined) => (next ? { go: next.node } : {});
	switch (key) {
		case "ArrowDown":
			return to(rows[at + 1]);
		case "ArrowUp":
			return to(rows[at < 0 ? 0 : at - 1]);
		case "Home":
			return to(rows[0]);
		case "End":
			return to(rows.at(-1));
		case "ArrowRight":
			if (row?.block && !row.open) return { open: row.node };
			return row?.block && rows[at + 1]?.parent === row.node ? to(rows[at + 1]) : {};
		case "ArrowLeft":
			if (row?.block && row.open) return { close: row.node };
			return row?.parent ? { go: row.parent } : {};
		default:
			return {};
	}
}
