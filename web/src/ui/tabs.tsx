import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { cx } from "./class";

export interface Tab {
	value: string;
	label: ReactNode;
	content: ReactNode;
}

export interface TabsProps {
	/** Read by screen readers. */
	label: string;
	tabs: Tab[];
	value: string;
	onChange: (value: string) => void;
	className?: string;
	contentClassName?: string;
}

/** Tabs is controlled. Pass a value from the URL if the tab should be linkable. */
export function Tabs({ label, tabs, value, onChange, className, contentClassName }: TabsProps) {
	return (
		<Radix.Root value={value} onValueChange={onChange} className={cx("flex min-h-0 flex-col", className)}>
			<Radix.List
				aria-label={label}
				className="flex shrink-0 gap-4 overflow-x-auto overflow-y-hidden px-1 shadow-[inset_0_-1px_0_var(--border)]"
			>
				{tabs.map((tab) => (
					<Radix.Trigger
						key={tab.value}
						value={tab.value}
						className="flex h-9 shrink-0 items-center gap-2 border-b-2 border-transparent font-medium text-muted -outline-offset-2 hover:text-text data-[state=active]:border-accent data-[state=active]:text-text"
					>
						{tab.label}
					</Radix.Trigger>
				))}
			</Radix.List>
			{tabs.map((tab) => (
				<Radix.Content
					key={tab.value}
					value={tab.value}
					className={cx("min-h-0 flex-1 pt-4 -outline-offset-2", contentClassName)}
				>
					{tab.content}
				</Radix.Content>
			))}
		</Radix.Root>
	);
}
