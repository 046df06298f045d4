import { memo, type ReactNode } from "react";
import { cx } from "@/ui/class";
import { EachIcon, LoopIcon } from "./icons";
import { box } from "./look";
import { Condition, NodeBadges, NodeStatus, type StepNodeProps } from "./step-node";

export interface FrameNodeProps extends Omit<StepNodeProps, "uses"> {
	kind: "foreach" | "repeat";
	/** As returned by `frameWords`. */
	words: readonly string[];
	/** Shown in place of its steps while it has none. */
	empty?: ReactNode;
}

/** FrameNode renders a block: a header, and space for its steps. */
export const FrameNode = memo(function FrameNode(props: FrameNodeProps) {
	const { kind, name, words, condition, status, selected, faint, empty, children } = props;
	const Shape = kind === "repeat" ? LoopIcon : EachIcon;
	const says = words.join(" · ");
	return (
		<div className={cx(box({ status, selected, faint }), "flex flex-col !bg-canvas/80")}>
			{status === "failed" && <span className="absolute inset-y-0 left-0 w-1 rounded-l-6 bg-failed" />}
			{condition && <Condition text={condition} raised />}
			<div
				className={cx(
					"flex h-10 shrink-0 items-center gap-3 rounded-t-[7px] border-b bg-surface pr-3 pl-4 text-12",
					status === "failed" && "ml-1 rounded-tl-none !pl-3",
				)}
			>
				<Shape className="text-muted" />
				<span className="min-w-0 flex-1">
					<span className="block truncate text-13 leading-[18px] font-semibold" title={name}>
						{name}
					</span>
					<span className="block truncate text-muted" title={says}>
						{says}
					</span>
				</span>
				<span className="flex items-center gap-1.5 text-muted">
					<NodeBadges {...props} />
				</span>
				<span className="*:flex-row-reverse *:items-center *:gap-1.5">
					<NodeStatus {...props} />
				</span>
			</div>
			<div className="flex min-h-0 flex-1 items-center justify-center">{empty}</div>
			{children}
		</div>
	);
});
