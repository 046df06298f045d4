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
	/** The name of the service that it belongs to. */
	readonly service?: string;
	/** Further words to find it by, such as what other products call it. */
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
		keywords: ["loop", "iterate", "iterator", "map", "split in batches", "split a list", "parallel", "array"],
		picks: { kind: "step", step: { foreach: "", steps: [] } },
	},
	{
		key: "repeat",
		title: "Repeat until",
		summary: "Repeats steps until a condition is true.",
		group: "Flow",
		icon: "repeat",
		keywords: ["loop", "iterate", "while", "do while", "poll", "pagination"],
		picks: { kind: "step", step: { repeat: { until: "", every: "30s", max: 20 }, steps: [] } },
	},
];

export const triggerChoices: readonly Choice[] = triggerInfos.map(({ type, name, summary, keywords }) => ({
	key: type,
	title: name,
	summary,
	group: "What starts this workflow?",
	icon: type,
	keywords,
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
					service,
					keywords,
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
					service,
					keywords,
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
			keywords: action.keywords,
			picks: { kind: "step", step: stepOf(action) },
		};
	});
	const place = (choice: Choice) => (order.includes(choice.group) ? order.indexOf(choice.group) : order.length);
	return [...blocks, ...own].sort((a, b) => place(a) - place(b));
}
