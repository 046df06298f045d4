import type { Schema } from "@/api/client";
import { Badge } from "@/ui/badge";
import { BoltIcon, CheckIcon, EditIcon, PauseIcon } from "@/ui/icons";

export type State = Schema["WorkflowState"];

export const states: Record<State, string> = { active: "Active", paused: "Paused", draft: "Draft" };

const looks = {
	active: { tone: "good", icon: CheckIcon },
	paused: { tone: "warn", icon: PauseIcon },
	draft: { tone: "neutral", icon: EditIcon },
} as const;

export function StateBadge({ state }: { state: State }) {
	const { tone, icon: Shape } = looks[state] ?? { tone: "neutral", icon: BoltIcon };
	return (
		<Badge tone={tone}>
			<Shape size={12} />
			{states[state] ?? state}
		</Badge>
	);
}
