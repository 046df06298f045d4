import { memo, type ReactNode } from "react";
import { triggerIcon } from "@/shared/triggers";
import { cx } from "@/ui/class";
import { IconTile } from "../mark";
import { box } from "./look";
import { NodeBadges, NodeStatus } from "./step-node";

/** StartNode is the bar below the triggers, where the first steps start. */
export const StartNode = memo(function StartNode({ selected, children }: { selected?: boolean; children?: ReactNode }) {
	return (
		<div
			className={cx(
				"relative flex size-full items-center justify-center rounded-full border bg-sunken text-12 font-medium text-muted",
				selected && "outline-2 outline-offset-1 outline-accent",
			)}
		>
			Start
			{children}
		</div>
	);
});

export interface TriggerNodeProps {
	type: string;
	/** As returned by `triggerName` and `triggerWords`. */
	name: string;
	words: string;
	problems?: number;
	/** Why the trigger does not work for now. */
	warning?: string;
	/** This trigger started the run. */
	fired?: boolean;
	selected?: boolean;
	faint?: boolean;
	children?: ReactNode;
}

export const TriggerNode = memo(function TriggerNode(props: TriggerNodeProps) {
	const { type, name, words, problems, warning, fired, selected, faint, children } = props;
	return (
		<div
			className={cx(
				box({ selected, faint }),
				"flex items-center gap-3 rounded-full pr-5 pl-4",
				fired && "!border-accent",
			)}
		>
			<IconTile
				icon={triggerIcon(type)}
				round
				className={faint ? "bg-sunken text-muted" : "bg-accent-soft text-accent"}
			/>
			<span className="min-w-0 flex-1">
				<span className="block truncate font-semibold" title={name}>
					{name}
				</span>
				<span className="flex min-w-0 items-center gap-1.5 text-12 text-muted">
					<span className="truncate" title={words}>
						{words}
					</span>
					<NodeBadges warning={warning} />
				</span>
			</span>
			{fired && <span className="text-12 text-accent">Started this run</span>}
			<NodeStatus problems={problems} />
			{children}
		</div>
	);
});
