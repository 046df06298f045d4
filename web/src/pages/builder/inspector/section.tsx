import { type ReactNode, useId, useState } from "react";
import { ChevronDownIcon, ChevronRightIcon } from "@/ui/icons";

export interface SectionProps {
	title: string;
	/** A short summary, shown while collapsed. */
	summary?: ReactNode;
	/** Initially expanded. */
	open?: boolean;
	children: ReactNode;
}

/** Section is a collapsible part of the form. */
export function Section({ title, summary, open: first = false, children }: SectionProps) {
	const [open, setOpen] = useState(first);
	const id = useId();
	const Chevron = open ? ChevronDownIcon : ChevronRightIcon;
	return (
		<section className="border-t">
			<h3>
				<button
					type="button"
					aria-expanded={open}
					aria-controls={id}
					onClick={() => setOpen(!open)}
					className="flex h-10 w-full min-w-0 items-center gap-2 px-4 text-left -outline-offset-2 hover:bg-sunken"
				>
					<Chevron className="text-muted" />
					<span className="font-medium whitespace-nowrap">{title}</span>
					{!open && summary && <span className="ml-auto min-w-0 truncate text-12 text-muted">{summary}</span>}
				</button>
			</h3>
			<div id={id} hidden={!open} className="px-4 pt-1 pb-4">
				{open && <div className="flex flex-col gap-4">{children}</div>}
			</div>
		</section>
	);
}
