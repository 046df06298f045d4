import type { Schema } from "@/api/client";
import type { Icon } from "@/ui/icons";

type Group = "Go to" | "Create" | "Workflows" | "Run" | "Runs" | "Templates";

export interface Command {
	id: string;
	group: Group;
	name: string;
	/** Shown next to the name, less prominently. */
	hint?: string;
	icon?: Icon;
	run: () => void;
}

/** score rates how well a name matches the text: lower is better, null means no match. */
export function score(name: string, text: string): number | null {
	const low = name.toLowerCase();
	const want = text.trim().toLowerCase();
	if (want === "") return 0;
	if (low.startsWith(want)) return 0;
	if (low.split(/[\s/&-]+/).some((word) => word.startsWith(want))) return 1;
	if (low.includes(want)) return 2;
	const words = want.split(/\s+/);
	return words.length > 1 && words.every((word) => low.includes(word)) ? 3 : null;
}

const order: Group[] = ["Go to", "Create"];

/** rank orders the static commands, best match first, and limits each group. */
export function rank(commands: Command[], text: string, perGroup = text.trim() === "" ? 12 : 8): Command[] {
	return order.flatMap((group) =>
		commands
			.filter((command) => command.group === group)
			.map((command) => ({ command, fit: score(command.name, text) }))
			.filter((one): one is { command: Command; fit: number } => one.fit !== null)
			.sort((a, b) => a.fit - b.fit)
			.slice(0, perGroup)
			.map((one) => one.command),
	);
}

/** parseQuery splits the text: "run invoices" searches for "invoices" in order to run it. */
export function parseQuery(text: string): { query: string; toRun: boolean } {
	const rest = /^\s*run\s+(\S.*)$/i.exec(text)?.[1];
	return rest === undefined ? { query: text.trim(), toRun: false } : { query: rest.trim(), toRun: true };
}

export interface Results {
	workflows: Pick<Schema["WorkflowListItem"], "id" | "name">[];
	runs: Pick<Schema["AllRunsItem"], "id" | "workflow_name">[];
	templates: Pick<Schema["TemplateItem"], "name" | "title">[];
}

/** ResultActions are the actions of the search results. Without `start`, workflows cannot be run. */
export interface ResultActions {
	openWorkflow: (id: string) => void;
	openRun: (id: string) => void;
	openTemplate: (name: string) => void;
	start?: (id: string) => void;
}

/** commandsOf turns search results, which are already sorted, into commands. */
export function commandsOf({ workflows, runs, templates }: Results, steps: ResultActions, toRun: boolean): Command[] {
	const { start } = steps;
	const opening = workflows.map(
		({ id, name }): Command => ({ id, group: "Workflows", name, run: () => steps.openWorkflow(id) }),
	);
	const starting = start
		? workflows.map(
				({ id, name }): Command => ({ id: `run-${id}`, group: "Run", name: `Run ${name}`, run: () => start(id) }),
			)
		: [];
	return [
		...(toRun ? [...starting, ...opening] : [...opening, ...starting]),
		...runs.map(
			({ id, workflow_name }): Command => ({
				id,
				group: "Runs",
				name: workflow_name,
				hint: id,
				run: () => steps.openRun(id),
			}),
		),
		...templates.map(
			({ name, title }): Command => ({
				id: `template-${name}`,
				group: "Templates",
				name: title,
				run: () => steps.openTemplate(name),
			}),
		),
	];
}
