import type { MouseEvent } from "react";
import { cx } from "@/ui/class";
import { PlusIcon } from "@/ui/icons";

/**
 * Plus is an add button: 24 px visible, 32 px clickable. It is not a tab stop, because
 * there are shortcuts for adding.
 */
export function Plus({ label, onClick, className }: { label: string; onClick: () => void; className?: string }) {
	const click = (event: MouseEvent) => {
		event.stopPropagation();
		onClick();
	};
	return (
		<button
			type="button"
			tabIndex={-1}
			aria-label={label}
			title={label}
			onClick={click}
			className={cx("nodrag nopan group pointer-events-auto flex size-8 items-center justify-center", className)}
		>
			<span className="flex size-6 items-center justify-center rounded-full border border-border bg-surface text-muted group-hover:border-accent group-hover:bg-accent group-hover:text-on-accent">
				<PlusIcon size={14} />
			</span>
		</button>
	);
}
