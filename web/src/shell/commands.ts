import type { Icon } from "@/ui/icons";

export interface Command {
	id: string;
	group: "Go to" | "Create" | "Workflows" | "Run";
	name: string;
	icon?: Icon;
	run: () => void;
}

/** score is how well a name fits what was typed: lower is better, and null does not fit. */
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

const order: Command["group"][] = ["Go to", "Create", "Workflows", "Run"];

/** rank is what the palette shows: what fits best first, group by group, a few of each. */
export function rank(commands: Command[], text: string, perGroup = text.trim() === "" ? 12 : 8): Command[] {
	return order.flatMap((group) =>
		commands
			.filter((command) => command.group === group)
			.map((command) => ({ command, fit: score(command.name, text) }))
			.filter((one): one is { command: Command; fit: number } => one.fit !== null)
			.sort((a, b) => a.fit - b.fit)
			.slice(0, text.trim() === "" && group === "Run" ? 0 : perGroup)
			.map((one) => one.command),
	);
}
