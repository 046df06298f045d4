import type { Integration } from "@/shared/connections/data";
import { triggerInfos } from "@/shared/triggers";
import { idFrom, type NewStep, newSwitch, switchAction, type TriggerType } from "@/shared/workflow/model";
import type { Action } from "./actions";

/** An item in the picker. */
export interface Choice {
	readonly key: string;
	readonly title: string;
	readonly summary: string;
	readonly group: string;
	/** The key of its icon. */
	readonly icon: string;
	/** Further words to find it by. */
	readonly keywords?: readonly string[];
	readonly picks:
		| { readonly kind: "step"; readonly step: NewStep }
		| { readonly kind: "trigger"; readonly type: TriggerType };
}

const blocks: readonly Choice[] = [
	{
		key: "foreach",
		title: "For each",
		summary: "Runs steps once for every item of a list.",
		group: "Flow",
		icon: "foreach",
		picks: { kind: "step", step: { foreach: "", steps: [] } },
	},
	{
		key: "repeat",
		title: "Repeat until",
		summary: "Repeats steps until a condition is true.",
		group: "Flow",
		icon: "repeat",
		picks: { kind: "step", step: { repeat: { until: "", every: "30s", max: 20 }, steps: [] } },
	},
];

export const triggerChoices: readonly Choice[] = triggerInfos.map(({ type, name, summary }) => ({
	key: type,
	title: name,
	summary,
	group: "What starts this workflow?",
	icon: type,
	picks: { kind: "trigger", type },
}));

/** The triggers of the integrations. */
export function serviceTriggerChoices(integrations: readonly Integration[]): Choice[] {
	return integrations.flatMap(({ name: service, keywords, triggers }) =>
		triggers
			.filter(({ deprecated }) => !deprecated)
			.map(
				({ type, title, summary }): Choice => ({
					key: type,
					title,
					summary: summary ? `${service}: ${summary}` : service,
					group: service,
					icon: type,
					keywords: [service, ...keywords],
					picks: { kind: "trigger", type: type as TriggerType },
				}),
			),
	);
}

/** A new step gets the title of its action as its name, and a short id for expressions. */
export function stepOf(action: Pick<Action, "name" | "title">): NewStep {
	if (action.name === switchAction) return newSwitch;
	return { id: idFrom(action.name.split(".").at(-1) ?? action.name), name: action.title, uses: action.name };
}

const families: Record<string, string> = {
	flow: "Flow",
	http: "Web",
	graphql: "Web",
	data: "Data",
	code: "Data",
	log: "Data",
	table: "Tables and keys",
	state: "Tables and keys",
};
const order = ["Web", "Data", "Flow", "Tables and keys"];

/** The operations of the integrations, grouped by service. */
export function operationChoices(integrations: readonly Integration[]): Choice[] {
	return integrations.flatMap(({ name: service, keywords, operations }) =>
		operations
			.filter(({ deprecated }) => !deprecated)
			.map(
				({ action, title, summary }): Choice => ({
					key: action,
					title,
					summary: summary ? `${service}: ${summary}` : service,
					group: service,
					icon: action,
					keywords: [service, ...keywords],
					picks: { kind: "step", step: stepOf({ name: action, title }) },
				}),
			),
	);
}

/** The actions and blocks, grouped. */
export function stepChoices(actions: readonly Action[]): Choice[] {
	const own = actions.map((action): Choice => {
		const family = action.name.split(".")[0] ?? "";
		return {
			key: action.name,
			title: action.title,
			summary: action.summary,
			group: families[family] ?? "Services",
			icon: action.name,
			picks: { kind: "step", step: stepOf(action) },
		};
	});
	const place = (choice: Choice) => (order.includes(choice.group) ? order.indexOf(choice.group) : order.length);
	return [...blocks, ...own].sort((a, b) => place(a) - place(b));
}

/** The choices that match the text, best match first. Every word must match. */
export function search(choices: readonly Choice[], typed: string): Choice[] {
	const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
	if (words.length === 0) return [...choices];
	const scored = choices.flatMap((choice) => {
		const score = scoreOf(choice, words);
		return score === 0 ? [] : [{ choice, score }];
	});
	return scored.sort((a, b) => b.score - a.score).map(({ choice }) => choice);
}

function scoreOf(choice: Choice, words: readonly string[]): number {
	const name = `${choice.title} ${choice.key} ${choice.keywords?.join(" ") ?? ""}`.toLowerCase();
	const rest = `${choice.summary} ${choice.group}`.toLowerCase();
	let score = 0;
	for (const word of words) {
		if (choice.title.toLowerCase().startsWith(word)) score += 4;
		else if (name.split(/[\s._]+/).some((part) => part.startsWith(word))) score += 3;
		else if (name.includes(word)) score += 2;
		else if (rest.includes(word)) score += 1;
		else return 0;
	}
	return score;
}
