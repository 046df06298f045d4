import type { ReactNode } from "react";
import { cx } from "@/ui/class";
import { PlusIcon } from "@/ui/icons";

export interface PlaceholderProps {
	id: string;
	current: boolean;
	onClick: () => void;
	round?: boolean;
	children: ReactNode;
}

/** Placeholder invites the user to add something that is missing. */
export function Placeholder({ id, current, onClick, round, children }: PlaceholderProps) {
	return (
		<button
			type="button"
			data-node={id}
			tabIndex={current ? 0 : -1}
			onClick={onClick}
			className={cx(
				"nodrag nopan pointer-events-auto flex size-full items-center justify-center gap-2 border-2 border-dashed border-control/50 bg-surface/60 font-medium text-muted hover:border-accent hover:text-accent",
				round ? "rounded-full" : "rounded-8",
			)}
		>
			<PlusIcon />
			{children}
		</button>
	);
}
